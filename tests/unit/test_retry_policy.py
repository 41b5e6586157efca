import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.errors import (
    BlockedError,
    CorpusChangedError,
    CotrailError,
    InputError,
    ModelChangedError,
    NotInstalledError,
    PromptTooLongError,
    StepError,
    TransientStepError,
    UnavailableError,
    UnknownNameError,
    UnknownVersionError,
)
from cotrail.tasks.failures import (
    LONGEST_HOLD,
    RETRIES,
    TRIAL_SECONDS,
    TRIALS,
    Block,
    CircuitBreaker,
    Fail,
    Hold,
    Retry,
    seconds,
    verdict,
)
from tests.cases import each_case

MOST = 5


@each_case("retries", [0, 3, 4, 100])
@each_case(
    ("kind", "expected"),
    [
        (StepError, Fail()),
        (PromptTooLongError, Fail()),
        (InputError, Block()),
        (UnknownNameError, Block()),
        (BlockedError, Block()),
        (ModelChangedError, Block()),
        (CorpusChangedError, Block()),
        (UnknownVersionError, Block()),
        (NotInstalledError, Block()),
        (UnavailableError, Hold(None)),
    ],
)
def test_what_another_try_cannot_mend_is_decided_whatever_was_tried_before(
    kind: type[CotrailError], expected: object, retries: int
) -> None:
    assert verdict(kind("no"), retries, MOST) == expected


@each_case("error", [TransientStepError("no"), OSError("no"), ValueError("no"), MemoryError()])
def test_everything_else_is_tried_again_so_often_and_then_fails(error: Exception) -> None:
    assert [type(verdict(error, retries, MOST)) for retries in range(MOST)] == [Retry] * (MOST - 1) + [Fail]
    assert verdict(error, 0, 1) == Fail()


def test_how_long_a_server_asks_to_be_left_alone_is_passed_on() -> None:
    assert verdict(UnavailableError("busy", 7.5), 0, MOST) == Hold(7.5)


@given(st.integers(1, 10_000))
def test_waits_grow_to_a_limit_and_are_never_none(number: int) -> None:
    for wait, limit in ((RETRIES, 60), (TRIALS, 30)):
        assert 1 <= seconds(wait, number) <= min(2**number, limit)


def test_waits_differ() -> None:
    assert len({seconds(RETRIES, 5) for _ in range(20)}) > 10


# CircuitBreaker


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker(clock)


def test_nothing_is_held_until_something_was_found_away(breaker: CircuitBreaker) -> None:
    assert breaker.wait("a") is None
    assert not breaker.succeeded("a")
    breaker.failed("a")
    assert breaker.wait("a") is not None
    assert breaker.wait("b") is None


def test_once_a_trial_is_due_one_step_is_the_trial_and_the_others_wait_for_it(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    clock.now = breaker.failed("a")
    assert breaker.wait("a") is None
    assert [breaker.wait("a") for _ in range(3)] == [TRIAL_SECONDS] * 3
    due = breaker.failed("a")
    assert due <= (breaker.wait("a") or 0) <= due + 1
    clock.now += due
    assert breaker.wait("a") is None
    assert breaker.succeeded("a")
    assert [breaker.wait("a") for _ in range(3)] == [None] * 3


def test_many_that_find_it_away_at_once_are_one_trial(breaker: CircuitBreaker, clock: Clock) -> None:
    together = [breaker.failed("a") for _ in range(300)]
    assert len(set(together)) == 1
    assert together[0] <= 2


def test_an_hour_away_takes_few_trials(breaker: CircuitBreaker, clock: Clock) -> None:
    trials = 1
    breaker.failed("a")
    while clock.now < 3600:
        wait = breaker.wait("a")
        if wait is None:
            trials += 1
            wait = breaker.failed("a")
        clock.now += wait
    assert 100 < trials < 400


@given(st.floats(0, 1e9))
def test_it_is_left_alone_as_long_as_it_asks_within_reason(asked: float) -> None:
    wait = CircuitBreaker(Clock()).failed("a", asked)
    assert min(asked, LONGEST_HOLD) <= wait <= max(2.0, LONGEST_HOLD)
