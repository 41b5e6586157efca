"""Retry policy of failed steps, with exponential backoff between attempts.

| what was raised | what it is | what happens |
| --- | --- | --- |
| BlockedError, InputError | something that a person has to fix | the question is blocked |
| BusyError | a limit of the account with a provider | held back, at no cost; other steps go on |
| UnavailableError | an outage of what the step needs | held back, at no cost |
| StepError | it can't succeed, however often it is tried | it fails at once |
| anything else | it may succeed another time | tried again, up to a limit; then it fails |

Some errors are two of these: the upper line counts, as for a library that isn't installed.
"""

from msgspec import Struct
from tenacity import RetryCallState, Retrying, wait_random_exponential
from tenacity.wait import wait_base

from cotrail.errors import BlockedError, BusyError, InputError, StepError, UnavailableError

RETRIES = wait_random_exponential(multiplier=2, min=1, max=60)
"""Exponential backoff with jitter until a step is tried again: steps that failed together don't return together."""

TRIALS = wait_random_exponential(multiplier=2, min=1, max=30)
"""Exponential backoff with jitter until an engine that is away is tried again."""

LONGEST_HOLD = 300.0
"""Most seconds until an engine is tried again, however long it asks to be left alone."""


class Fail(Struct, frozen=True):
    """The failure becomes the step's, for its system to see."""


class Retry(Struct, frozen=True):
    """The step is tried again after this many seconds."""

    seconds: float


class Hold(Struct, frozen=True):
    """The step waits until the engine that it needs is back; seconds: how long that asks to be left alone."""

    seconds: float | None


class Wait(Struct, frozen=True):
    """The step waits until its account with a provider may go on, in this many seconds."""

    seconds: float


class Block(Struct, frozen=True):
    """The question waits for a person."""


Verdict = Fail | Retry | Hold | Wait | Block


def verdict(error: BaseException, retries: int, max_attempts: int) -> Verdict:
    """The verdict on a failed step; retries: how often it was tried again already."""
    match error:
        case BlockedError() | InputError():
            return Block()
        case BusyError():
            return Wait(min(seconds(TRIALS, 1) if error.seconds is None else error.seconds, LONGEST_HOLD))
        case UnavailableError():
            return Hold(error.seconds)
        case StepError():
            return Fail()
    return Fail() if retries + 1 >= max_attempts else Retry(seconds(RETRIES, retries + 1))


def seconds(wait: wait_base, number: int) -> float:
    """Seconds to wait after the failure of that number, from 1."""
    # tenacity computes waits from the state of a call of its own; here the store counts the attempts instead.
    state = RetryCallState(Retrying(), None, (), {})
    state.attempt_number = number
    return wait(state)
