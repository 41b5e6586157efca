"""Actions that don't need each other, as parts of systems ask for them."""

from collections.abc import Iterable
from typing import TypeVar

from cotrail.core.actions.kind import Action
from cotrail.core.actions.read import Read
from cotrail.core.actions.reason import Reason
from cotrail.core.results import Embedded, Entailed, Failure, Generated, Result, Retrieved
from cotrail.core.system import StepFailed, Together
from cotrail.systems.parts.reading import NOTHING, Part

R = TypeVar("R", Retrieved, Generated, Embedded, Entailed)


def all_of(actions: Iterable[Action], expected: type[R]) -> Part[tuple[R, ...]]:
    """The results of all of these, which are of the expected type; nothing is yielded where there are no actions."""
    asked = tuple(actions)
    if not asked:
        return ()
    results = yield Together(asked)
    assert isinstance(results, tuple)  # noqa: S101 - what a Together is answered with
    return tuple(result for result in results if isinstance(result, expected))


def texts_of(actions: Iterable[Reason | Read]) -> Part[tuple[str, ...]]:
    """What each of these wrote, empty where the model wrote nothing; any other failure is the system's."""
    outcomes: tuple[Result | Failure, ...]
    try:
        outcomes = yield from all_of(actions, Generated)
    except StepFailed as failed:
        outcomes = failed.outcomes
    return tuple(_text(outcome) for outcome in outcomes)


def _text(outcome: Result | Failure) -> str:
    if isinstance(outcome, Failure):
        if outcome.type != NOTHING:
            raise StepFailed(outcome)
        return ""
    assert isinstance(outcome, Generated)  # noqa: S101 - what a Reason or a Read is answered with
    return outcome.text
