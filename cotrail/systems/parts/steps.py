"""Several actions at once, and texts that may be empty, as parts of systems ask for them."""

from collections.abc import Iterable
from typing import TypeVar

from cotrail.core.results import Failure, Generated, Result
from cotrail.core.system import Action, LimitReached, Part, Reply, StepFailed, Together, expect, expect_each

ResultT = TypeVar("ResultT", bound=Result)

EMPTY_GENERATION = "EmptyGenerationError"
"""The failure in records from before an empty generation was a result like any other; they replay as the empty text."""


def last_step(action: Action) -> Part[Reply]:
    """The reply to the step with which a system ends, also where a limit ends it there: what that asks for is this."""
    try:
        return (yield action)
    except LimitReached:
        return (yield action)


def last_text(action: Action) -> Part[str]:
    """The text of the generation with which a system ends; see `last_step`."""
    return expect((yield from last_step(action)), Generated).text


def all_of(actions: Iterable[Action], expected: type[ResultT]) -> Part[tuple[ResultT, ...]]:
    """The results of actions that don't need each other, in their order; nothing is yielded if there are none."""
    batch = tuple(actions)
    if not batch:
        return ()
    return expect_each((yield Together(batch)), expected)


def texts_of(actions: Iterable[Action]) -> Part[tuple[str, ...]]:
    """The text that each generation wrote, maybe empty; a failed one fails the system."""
    outcomes: tuple[Result | Failure, ...]
    # One failure fails a Together, whose other texts are still wanted if it is but an old record of an empty text.
    try:
        outcomes = yield from all_of(actions, Generated)
    except StepFailed as failed:
        outcomes = failed.outcomes
    return tuple(_text(outcome) for outcome in outcomes)


def text_of(action: Action) -> Part[str]:
    """The text that one generation wrote, maybe empty; a failed one fails the system."""
    try:
        return expect((yield action), Generated).text
    except StepFailed as failed:
        if failed.failure.type != EMPTY_GENERATION:
            raise
        return ""


def _text(outcome: Result | Failure) -> str:
    if not isinstance(outcome, Failure):
        return expect(outcome, Generated).text
    if outcome.type != EMPTY_GENERATION:
        raise StepFailed(outcome)
    return ""
