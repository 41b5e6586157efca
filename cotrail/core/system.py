"""Systems: generators that yield actions, are sent their results, and return an answer."""

from collections.abc import Callable, Generator
from typing import TypeVar

from msgspec import Struct

from cotrail.core.questions import Paragraph
from cotrail.core.results import Failure, Result


class Action(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A step that a system yields; each kind is a class of its own."""


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


class LimitReached(Exception):  # noqa: N818 - named as systems read it: except LimitReached
    """Thrown into a system in place of a reply, and of what it asked for last, where a budget is used up.

    A system that catches it answers from what it has found, by one last step at most that its reader takes: further
    steps aren't limited. Where it doesn't, the answer is empty. limit: which one was reached, such as `tokens`.
    outcomes: how those of the actions yielded together ended that the budget had room for, the first ones; mostly none.
    """

    def __init__(self, limit: str, outcomes: tuple[Result | Failure, ...] = ()) -> None:
        super().__init__(f"the budget of {limit} is used up")
        self.limit = limit
        self.outcomes = outcomes


class Answer(Struct, frozen=True, kw_only=True):
    """The answer that a system returns.

    text: the answer, empty where none was found.
    sentences: the chain of thought behind it; paragraphs: all that were collected, in that order.
    details: further data, of the type that the system's specification names; None where it has none.
    limit: the name of the limit at which the system stopped, such as `sentences`; empty where it came to its end.
    """

    text: str
    sentences: tuple[str, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()
    details: Struct | None = None
    limit: str = ""


T = TypeVar("T")
ResultT = TypeVar("ResultT", bound=Result)

Reply = Result | tuple[Result, ...]
"""The driver's reply to what a system yields: the action's result, or one for each action of a `Together`."""

Part = Generator[Action | Together, Reply, T]
"""A part of a system, which other parts run with `yield from`, and which returns a T."""

System = Part[Answer]


def asking_by(ask: Callable[[Action | Together], Part[Reply]], part: Part[T]) -> Part[T]:
    """Run a part of which `ask` carries out whatever it yields, and returns the reply or raises what it is thrown."""
    try:
        asked = next(part)
        while True:
            try:
                reply = yield from ask(asked)
            except (StepFailed, LimitReached) as thrown:
                asked = part.throw(thrown)
            else:
                asked = part.send(reply)
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        part.close()


def expect(reply: Reply, kind: type[ResultT]) -> ResultT:
    """The reply as a result of the type that its action has; TypeError if it isn't, which only a wrong driver does."""
    if not isinstance(reply, kind):
        raise TypeError(f"the reply to an action is {reply!r:.200}, where a {kind.__name__} belongs")
    return reply


def expect_each(reply: Reply, kind: type[ResultT]) -> tuple[ResultT, ...]:
    """The replies to a `Together` as results of one type; TypeError as `expect`."""
    if not isinstance(reply, tuple):
        raise TypeError(f"the reply to a Together is {reply!r:.200}, where a tuple of results belongs")
    return tuple(expect(each, kind) for each in reply)
