"""A system as one of several samples: all that it has a model write is drawn anew (Wang et al., 2022)."""

from typing import TypeVar

from msgspec.structs import replace

from cotrail.core.actions.generate import Prompted
from cotrail.core.system import Action, LimitReached, Part, Reply, StepFailed, Together

T = TypeVar("T")

MOST_SAMPLES = 1000
"""Samples that a part draws itself at most: each of its samples has a number of its own in each of ours."""


def sampled(part: Part[T], number: int, temperature: float) -> Part[T]:
    """Run a part whose generations are drawn with seeds of sample `number`, and at this temperature unless given."""
    try:
        asked = next(part)
        while True:
            try:
                reply: Reply = yield _drawn_all(asked, number, temperature)
            except (StepFailed, LimitReached) as thrown:
                asked = part.throw(thrown)
            else:
                asked = part.send(reply)
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        part.close()


def _drawn_all(asked: Action | Together, number: int, temperature: float) -> Action | Together:
    if isinstance(asked, Together):
        return Together(tuple(_drawn(each, number, temperature) for each in asked.actions))
    return _drawn(asked, number, temperature)


def _drawn(action: Action, number: int, temperature: float) -> Action:
    if not isinstance(action, Prompted):
        return action
    sample = number if action.sample is None else (number + 1) * MOST_SAMPLES + action.sample
    return replace(action, sample=sample, temperature=temperature if action.temperature is None else action.temperature)
