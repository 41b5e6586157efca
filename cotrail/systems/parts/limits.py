"""The most that a system asks for, by the limits in its settings: for an estimate before anything is spent."""

from collections.abc import Mapping
from types import TracebackType

from msgspec import Struct

from cotrail.core.demonstrations import AnswerForm
from cotrail.core.results import Failure, Result
from cotrail.core.system import LimitReached

# The most that a system asks for, by the limits in its settings: for an estimate before anything is spent.


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


# Where a limit ends a part of a system: one of its own settings, or a budget, whose `LimitReached` is caught here.


class Limited:
    """A part of a system that a limit may end; what stands behind it answers from what was found.

    limit: the name of the limit, which the part sets where it is one of its own; empty where it comes to its end.
    outcomes: how those of the actions yielded together ended that a budget had room for; see `LimitReached`.
    """

    def __init__(self, limit: str = "") -> None:
        self.limit = limit
        self.outcomes: tuple[Result | Failure, ...] = ()

    def __enter__(self) -> "Limited":
        return self

    def __exit__(self, _: object, error: BaseException | None, __: TracebackType | None) -> bool:
        if not isinstance(error, LimitReached):
            return False
        self.limit, self.outcomes = error.limit, error.outcomes
        return True
