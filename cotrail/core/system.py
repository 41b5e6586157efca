"""Systems: generators that yield actions, are sent their results, and return an answer."""

from collections.abc import Generator

from msgspec import Struct

from cotrail.core.actions.kind import Action
from cotrail.core.paragraphs import Paragraph
from cotrail.core.results import Failure, Result


class Together(Struct, frozen=True):
    """Actions that don't need each other; their results come back in this order, once all of them have ended.

    Where some fail, the first failure is thrown into the system, and `StepFailed.outcomes` says how each ended.
    """

    actions: tuple[Action, ...]


class StepFailed(Exception):  # noqa: N818 - named as systems read it: except StepFailed
    """Thrown into a system in place of a result, live and on replay alike; a system may catch it.

    outcomes: how each of the actions yielded together ended, in their order.
    """

    def __init__(self, failure: Failure, outcomes: tuple[Result | Failure, ...] = ()) -> None:
        super().__init__(f"{failure.type}: {failure.message}")
        self.failure = failure
        self.outcomes = outcomes or (failure,)


class Answer(Struct, frozen=True, kw_only=True):
    """The answer that a system returns.

    text: the answer, empty where none was found.
    sentences: the chain of thought behind it; paragraphs: all that were collected, in that order.
    details: further data, of the type that the system's specification names; None where it has none.
    """

    text: str
    sentences: tuple[str, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()
    details: Struct | None = None


System = Generator[Action | Together, Result | tuple[Result, ...], Answer]
