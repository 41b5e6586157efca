"""Results of generations, from what an engine wrote."""

from collections.abc import Iterable

from cotrail.common.storable_text import storable
from cotrail.core.calls import Call
from cotrail.core.generation import Ended
from cotrail.core.prompts import Prompt
from cotrail.core.results import Generated
from cotrail.engines.language_models.thinking import NO_THOUGHT, Thought
from cotrail.engines.language_models.token_counts import TokenCounts


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
        prompt_tokens=tokens.prompt,
        cached_prompt_tokens=tokens.cached,
        generated_tokens=tokens.generated,
        drafted_tokens=tokens.drafted,
        accepted_tokens=tokens.accepted,
        thoughts=storable(thought.text),
        thoughts_are=thought.kind,
        thought_tokens=tokens.thought,
        carried=storable(thought.carried),
        cache_written_tokens=tokens.cache_written,
        estimated=tokens.estimated,
        served_by=storable(served_by),
    )
