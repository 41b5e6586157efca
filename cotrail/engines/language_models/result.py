"""Results of generations, from what an engine wrote."""

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import asdict

from cotrail.common.printable_text import storable
from cotrail.core.calls import Call
from cotrail.core.generation import Ended
from cotrail.core.prompts import Prompt
from cotrail.core.results import Generated
from cotrail.engines.language_models.thinking import NO_THOUGHT, Thought
from cotrail.engines.language_models.token_counts import TokenCounts
from cotrail.errors import PromptTooLongError, StepError


def first_tokens(encode: Callable[[str], list[int]], text: str, choices: Sequence[str]) -> list[int]:
    """The first token of each choice behind a text; raises StepError where two choices have the same or one has none.

    encode: returns a text's tokens.
    """
    before = encode(text)
    firsts = [_next(before, encode(text + choice)) for choice in choices]
    if None in firsts or len(set(firsts)) < len(firsts):
        raise StepError(
            f"the model's tokens don't tell apart how {', '.join(map(repr, choices))} begin: take choices that differ "
            "in their first words, or another model"
        )
    return [first for first in firsts if first is not None]


def check_fits(tokens: int, context: int) -> None:
    """Raises PromptTooLongError where a text has more tokens than the context."""
    if tokens > context:
        raise PromptTooLongError(f"the text has {tokens} tokens, and the context has room for {context}")


def shares(weights: Sequence[float]) -> tuple[float, ...]:
    """The weights normalized to a sum of 1."""
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def _next(before: list[int], after: list[int]) -> int | None:
    """The first token that the longer text adds; None where it changes the tokens before it."""
    # A tokenizer may merge the end of the text with the choice's beginning; the probability behind the text is then not
    # the choice's.
    return after[len(before)] if len(after) > len(before) and after[: len(before)] == before else None


def generated(
    packed: Prompt,
    kept: str,
    raw: str,
    tokens: TokenCounts,
    ended: Ended = "end",
    stop: str = "",
    calls: tuple[Call, ...] = (),
    scores: Iterable[tuple[str, float]] = (),
    thought: Thought = NO_THOUGHT,
    served_by: str = "",
) -> Generated:
    """The result of continuing a packed prompt; raw: everything that was written, kept: what the step asked for.

    ended, stop, calls, served_by: see `Generated`; scores: its `tokens`. Where a model thought and wrote nothing, the
    text ended with its thoughts.
    """
    if thought.kind and not (raw.strip() or calls) and ended != "refused":
        ended, stop = "thoughts", ""
    return Generated(
        text=storable(kept),
        raw=storable(raw),
        ended="calls" if calls else ended,
        stop="" if calls else stop,
        calls=tuple(Call(name=storable(call.name), arguments=storable(call.arguments), id=call.id) for call in calls),
        tokens=tuple((storable(text), score) for text, score in scores),
        demonstrations=len(packed.demonstrations.items),
        paragraphs=len(packed.yielding),
        first_demonstration=packed.first_demonstration,
        cuts=packed.cuts,
        prompt_digest=packed.digest,
        thoughts=storable(thought.text),
        thoughts_are=thought.kind,
        carried=storable(thought.carried),
        served_by=storable(served_by),
        **asdict(tokens),
    )
