"""What may be asked of a language model: its capabilities, where a text ends, and how its tokens are sampled."""

from typing import Literal

from msgspec import Struct

Capability = Literal["turns", "continue", "scores", "tools", "sampling", "structure"]
"""What an action may ask beyond the continuation of plain text. `turns`: conversations, laid out by the model's own
chat template. `continue`: a last turn of the assistant's is continued in place. `scores`: the log
probability of each token written. `tools`: tools are shown to the model, and its calls of them are read. `sampling`:
`top_k` and a repetition penalty. `structure`: JSON by a schema, or one of several words, to which models in the worker
are held while they write; a model that can't be held to these is asked again where it wrote something else."""

Until = Literal["sentence", "line", "chain", "end", "stop"]
"""Where a generation ends at the latest: behind the first whole sentence, at the line's end, before what begins a
further demonstration (`chain`), or where the model ends it. Of all these the text is stripped; with `stop` it is
verbatim, and ends before the first of the action's stop strings or where the model ends it."""

Ended = Literal["", "until", "stop", "end", "length", "calls", "thoughts", "refused"]
"""Why a generation ended: what was asked for is complete, a stop string, the model's own end, the most tokens, or calls
of tools, which are to be answered. `thoughts`: nothing but thoughts was written. `refused`: the model or its provider
refuses to answer. Empty in records from before this was recorded."""

ThoughtsKind = Literal["", "whole", "summary", "hidden"]
"""What is recorded of a model's thoughts: all of them, a summary that its provider wrote, or only their tokens' number.
Empty where it didn't think."""

HandsBack = Literal["none", "calls", "all"]
"""Which thoughts later prompts hand back to the model: none, those since the last turn of the user's, a loop of
tool calls, or all."""

RULES = "rules"
"""The splitter that is cotrail's own, `cotrail.common.sentence_boundaries`."""


class Cut(Struct, frozen=True, array_like=True, gc=False):
    """A piece of a prompt that was cut: its place among all pieces, and the characters of its text that were kept."""

    place: int
    start: int
    end: int


class Sampling(Struct, frozen=True, kw_only=True):
    """Sampling parameters; at temperature 0 the likeliest token is taken and the seed plays no part.

    sample: which of several this is; it decides nothing that the seed doesn't.
    top_p: only the likeliest tokens that together have this probability; 1 for all. top_k: only so many; 0 for all.
    repetition_penalty: what the logits of tokens that have occurred, in prompt or text, are divided by where they are
        positive and multiplied with where they aren't (Keskar et al., 2019); 1 for none. It applies at temperature 0
        too.
    """

    temperature: float = 0.0
    seed: int = 0
    sample: int | None = None
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0


def before_stop(text: str, stop: tuple[str, ...]) -> tuple[str, str]:
    """The text before the first of the stop strings in it, and that one; of two at the same place the longer one."""
    matches = [(place, -len(each), each) for each in stop if (place := text.find(each)) >= 0]
    if not matches:
        return text, ""
    place, _, first = min(matches)
    return text[:place], first
