"""The most that a system asks for, by the limits in its settings: for an estimate before anything is spent."""

from collections.abc import Mapping

from msgspec import Struct

from cotrail.core.demonstrations import AnswerForm


class Most(Struct, frozen=True, kw_only=True):
    """Steps of one kind that a question has at most.

    times: how many; in_turn: how many of these follow one another, None for all. output: the tokens that each writes at
    most; words: those that its prompt shows at most, beside the question and the demonstrations of `form`.
    """

    kind: str
    times: int
    in_turn: int | None = None
    output: int = 0
    words: int = 0
    form: AnswerForm | None = None


def words_in(own: Mapping[str, str]) -> int:
    """How many words all prompts of a system have together, which a single one never exceeds."""
    return sum(len(each.split()) for each in own.values())
