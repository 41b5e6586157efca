"""Thoughts of a served model: what is recorded of them, and how a table that doesn't know of them is found out."""

from cotrail.core.generation import ThoughtsKind
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.served.protocols.decoding import encoded
from cotrail.engines.language_models.served.stream import ServerStream
from cotrail.engines.language_models.thinking import Thinking, Thought
from cotrail.engines.language_models.thoughts import MARKS
from cotrail.engines.language_models.token_counts import TokenCounts
from cotrail.errors import BlockedError


def thought_of(thinking: Thinking, stream: ServerStream, counts: TokenCounts, *, has_calls: bool) -> Thought:
    """What a model thought; has_calls: whether it called tools, behind which its thoughts may be wanted back."""
    text = stream.thoughts
    handed_back = thinking.takes_back(has_calls=has_calls)
    carried = stream.reader.carried if handed_back else {}
    if handed_back and stream.between_marks and text:
        carried = carried | {"reasoning_content": text}
    return Thought(
        text=text,
        kind=_kind(thinking, stream, counts),
        carried=encoded(carried) if carried else "",
    )


def _kind(thinking: Thinking, stream: ServerStream, counts: TokenCounts) -> ThoughtsKind:
    if stream.thoughts:
        return "whole" if stream.between_marks else stream.reader.thoughts_are
    # All tokens went somewhere, and not into a text.
    lost = not stream.text.strip() and (thinking.thinks == "hidden" or stream.ending()[0] == "length")
    return "hidden" if counts.thought or lost else ""


def check_marks(endpoint: Endpoint, text: str) -> None:
    """Raises BlockedError where a text has thoughts in it that the model's table doesn't know of."""
    if endpoint.thinks in ("tags", "inside", "no"):
        return
    for marks in MARKS:
        before, closing, _ = text.partition(marks.closing)
        if text.lstrip().startswith(marks.opening):
            raise BlockedError(_unknown(endpoint, marks.opening, "tags"))
        if closing and marks.opening not in before:
            raise BlockedError(_unknown(endpoint, marks.closing, "inside"))


def _unknown(endpoint: Endpoint, mark: str, thinks: str) -> str:
    return (
        f"the model {endpoint.model} writes its thoughts into its text ({mark}), which its table in the list of models "
        f'does not say: set thinks = "{thinks}" and thought_tokens there ("no" where this is no thought), start the '
        "workers again and submit the run anew"
    )
