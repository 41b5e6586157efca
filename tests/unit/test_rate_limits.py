"""Pools of what accounts may use, and the headers in which providers tell it."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.ports.rate_limiter import DIMENSIONS, OUTDATED, Limits, Need
from cotrail.engines.language_models.served.pacing import pause_asked, told_limits
from cotrail.engines.language_models.served.refusals import LONGEST_PAUSE
from cotrail.engines.rate_limits import (
    APART,
    CREDIT_SECONDS,
    DOUBLING_SECONDS,
    FIRST_RATE,
    LONGEST_LINE,
    USED,
    ProcessLimiter,
)
from tests.cases import each_case


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@given(st.integers(1, 6000), st.lists(st.tuples(st.floats(0, 3), st.floats(0, 500), st.floats(0, 500)), max_size=60))
def test_no_more_is_allowed_than_the_limits(limit: int, asked: list[tuple[float, float, float]]) -> None:
    clock, limits = Clock(), Limits(requests=limit, input_tokens=100 * limit, output_tokens=50 * limit)
    limiter = ProcessLimiter(clock)
    sent: list[tuple[float, Need]] = []
    for passed, read, written in asked:
        clock.now += passed
        need = Need(input_tokens=read, output_tokens=written)
        sent.append((clock.now + limiter.reserve("a/m", need, limits, 1e9), need))
    for first, (began, _) in enumerate(sent):
        for last in range(first + 1, len(sent)):
            # All but the last of the requests between two times took what the time between them gives.
            used = [sum(values) for values in zip(*(need.values for _, need in sent[first:last]), strict=True)]
            seconds = sent[last][0] - began
            for dimension, amount, most in zip(DIMENSIONS, used, limits.values, strict=True):
                saved = 0.0 if dimension == "requests" else CREDIT_SECONDS
                assert not most or amount <= most * USED / 60 * (seconds + saved) + 1e-6 * most


def test_a_request_that_would_wait_too_long_reserves_nothing() -> None:
    clock = Clock()
    limiter, limits = ProcessLimiter(clock), Limits(requests=60)
    assert limiter.reserve("a", Need(), limits, 5) == 0
    waits = [limiter.reserve("a", Need(), limits, 2.5) for _ in range(5)]
    assert waits[:2] == pytest.approx([1 / USED, 2 / USED])
    assert waits[2:] == pytest.approx([3 / USED] * 3)
    assert limiter.reserve("b", Need(), limits, 0) == 0


def test_what_a_request_took_is_settled() -> None:
    clock = Clock()
    limiter, limits = ProcessLimiter(clock), Limits(output_tokens=6000)
    limiter.reserve("a", Need(output_tokens=1000), limits, 99)
    limiter.settle("a", Need(requests=0, output_tokens=-900), limits)
    assert limiter.reserve("a", Need(output_tokens=1), limits, 99) == pytest.approx(1 / USED)


def test_a_refusal_pauses_all_and_slows_down_who_is_told_no_limit() -> None:
    clock = Clock()
    limiter, unknown = ProcessLimiter(clock), Limits()
    for _ in range(100):
        clock.now += 0.1
        assert limiter.reserve("a", Need(), unknown, 9) == 0
    limiter.refused("a", 4.0)
    limiter.refused("a", 2.0)
    assert limiter.pause("a") == pytest.approx(4)
    clock.now += 4
    assert limiter.pause("a") == 0
    limiter.reserve("a", Need(), unknown, 9)
    # Ten a second, of which refusals leave eight tenths; the average isn't over yet.
    spacing = limiter.reserve("a", Need(), unknown, 9)
    assert 0.1 < spacing < 0.25
    clock.now += 600
    for _ in range(40):
        clock.now += 6
        limiter.reserve("a", Need(), unknown, 9)
    limiter.reserve("a", Need(), unknown, 9)
    assert limiter.reserve("a", Need(), unknown, 9) < spacing


def test_those_that_find_no_room_come_again_as_they_will_be_sent() -> None:
    clock, limits = Clock(), Limits(requests=60)
    limiter = ProcessLimiter(clock)
    for _ in range(4):
        limiter.reserve("a", Need(), limits, 4)
    turns = [limiter.line_up("a", Need(), limits) for _ in range(5)]
    assert turns == pytest.approx([(4 + place) / USED for place in range(5)])
    # Some may be gone: a hundred are asked in several rounds, the first of which begins where there is room.
    turns = [limiter.line_up("a", Need(), limits) for _ in range(100)]
    assert max(turns) <= LONGEST_LINE + 5 / USED
    assert sum(turn == pytest.approx(4 / USED) for turn in turns) == 3


def test_the_limits_that_one_is_told_hold_for_all_within_those_of_the_table() -> None:
    clock = Clock()
    limiter = ProcessLimiter(clock)
    limiter.tell("a", Limits(requests=60, output_tokens=600), 0)
    limiter.reserve("a", Need(output_tokens=20), Limits(), 9)
    assert limiter.reserve("a", Need(), Limits(), 9) == pytest.approx(2 / USED)
    limiter.tell("b", Limits(requests=60), 0)
    limiter.reserve("b", Need(), Limits(requests=30), 9)
    assert limiter.reserve("b", Need(), Limits(requests=30), 9) == pytest.approx(2 / USED)


def test_whoever_waits_reserves_again_where_limits_change_or_a_request_is_refused() -> None:
    clock, limits = Clock(), Limits(requests=60)
    limiter = ProcessLimiter(clock)
    plans = [limiter.plan("a")]
    for _ in range(5):
        limiter.reserve("a", Need(), limits, 9)
    limiter.refused("a", 2.0)
    plans.append(limiter.plan("a"))
    limiter.tell("a", Limits(requests=120), 0)
    plans.append(limiter.plan("a"))
    assert len(set(plans)) == 3
    limiter.tell("a", Limits(requests=120), 0)
    assert limiter.plan("a") == plans[-1]
    # An answer to an earlier request tells what held before.
    limiter.tell("a", Limits(requests=30), 1)
    assert limiter.plan("a") == plans[-1]
    # What was reserved before is dropped, and the pause is kept.
    assert limiter.reserve("a", Need(), limits, 9) == pytest.approx(2)


def test_the_next_request_leaves_later_where_one_was_late() -> None:
    clock, limits = Clock(), Limits(requests=60)
    limiter = ProcessLimiter(clock)
    assert limiter.leave("a", 0, limits) == 0
    clock.now += 0.9
    assert limiter.leave("a", 0, limits) == pytest.approx(1 / APART - 0.9)
    clock.now += 5
    assert limiter.leave("a", 0, limits) == 0
    assert limiter.leave("a", 0, limits) == pytest.approx(1 / APART)
    assert limiter.leave("a", 1, limits) == OUTDATED
    # Of many in a second, half may be late together.
    many = Limits(requests=1200)
    assert [limiter.leave("b", 0, many) for _ in range(9)] == [0] * 9
    assert any(limiter.leave("b", 0, many) for _ in range(3))


def test_an_account_of_which_nothing_is_known_is_asked_twice_as_often_each_second_until_it_refuses() -> None:
    clock = Clock()
    limiter, sent = ProcessLimiter(clock), []
    for _ in range(4):
        began = clock.now
        sent.append(0)
        while clock.now - began <= DOUBLING_SECONDS:
            clock.now += limiter.reserve("a", Need(), Limits(), 9)
            sent[-1] += 1
    assert sent == [pytest.approx(FIRST_RATE * 2**doubled, rel=0.1) for doubled in range(4)]


def test_a_rate_that_is_not_told_falls_to_what_is_let_through_and_stays_near_it() -> None:
    """A server that takes ten a second, and those of a second at once."""
    clock = Clock()
    limiter, level, at = ProcessLimiter(clock), 10.0, clock.now
    answered, refused = [], []
    while clock.now < 1400:
        clock.now += limiter.reserve("a", Need(), Limits(), 9)
        clock.now += limiter.leave("a", limiter.plan("a"), Limits())
        level, at = min(10.0, level + (clock.now - at) * 10), clock.now
        if level < 1:
            refused.append(clock.now)
            limiter.refused("a", 0.2)
            continue
        level -= 1
        answered.append(clock.now)
    late = [sum(1 for when in times if when > 1100) for times in (answered, refused)]
    assert late[0] >= 0.9 * 10 * 300
    assert late[1] <= 0.02 * late[0]


def test_pauses_that_nobody_tells_grow() -> None:
    clock = Clock()
    limiter, pauses = ProcessLimiter(clock), []
    for _ in range(8):
        limiter.refused("a", None)
        pauses.append(limiter.pause("a"))
        clock.now += pauses[-1]
    assert pauses == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60])


@each_case(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
        ({"retry-after": "7", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m30s"}, 7),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m30.5s"}, 90.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "500ms"}, 0.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "12.5"}, 12.5),
        ({"x-ratelimit-remaining-tokens": "3", "x-ratelimit-reset-tokens": "12.5"}, None),
        ({"retry-after-ms": "-4", "retry-after": "soon"}, None),
        ({"retry-after": "-4"}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after-ms": "0", "retry-after": "7"}, 7),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e400"}, None),
        ({"retry-after": "1000000000"}, LONGEST_PAUSE),
        ({"retry-after": "-9", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "2s"}, 2),
        ({"retry-after-ms": "nan"}, None),
        ({"retry-after": "999999999"}, LONGEST_PAUSE),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "9999999999h" * 4}, None),
    ],
)
def test_the_pause_that_headers_ask_for(headers: dict[str, str], seconds: float | None) -> None:
    assert pause_asked(headers) == seconds


def test_the_pause_until_a_date() -> None:
    later = datetime.now(UTC) + timedelta(hours=0.5)
    reset = {"anthropic-ratelimit-output-tokens-reset": later.isoformat().replace("+00:00", "Z")}
    assert 900 < (pause_asked({"anthropic-ratelimit-output-tokens-remaining": "0", **reset}) or 0) <= 1800
    past = {"anthropic-ratelimit-output-tokens-reset": "1970-01-01T00:00:00Z"}
    assert not pause_asked({"anthropic-ratelimit-output-tokens-remaining": "0", **past})


def test_the_limits_that_headers_tell() -> None:
    told = told_limits(
        {
            "x-ratelimit-limit-requests": "500",
            "x-ratelimit-limit-tokens": "200000",
            "anthropic-ratelimit-output-tokens-limit": "8000",
            "anthropic-ratelimit-input-tokens-limit": "-1",
        }
    )
    assert told == Limits(requests=500, tokens=200_000, output_tokens=8000)
    assert Limits(requests=60).within(told) == Limits(requests=60, tokens=200_000, output_tokens=8000)


def test_the_limits_that_mistral_tells() -> None:
    told = told_limits(
        {
            "x-ratelimit-limit-req-minute": "720",
            "x-ratelimit-remaining-req-minute": "717",
            "x-ratelimit-limit-tokens-minute": "5000000",
            "x-ratelimit-limit-tokens-month": "1000",
        }
    )
    assert told == Limits(requests=720, tokens=5_000_000)
    assert pause_asked({"x-ratelimit-remaining-req-minute": "0", "x-ratelimit-reset-req-minute": "21"}) == 21


@each_case("value", ["0", "-1", "0.001", "1e-300", "nan", "inf", "1e12", "many", "", "1,000"])
def test_a_limit_that_makes_no_sense_is_none(value: str) -> None:
    names = ("x-ratelimit-limit-requests", "x-ratelimit-limit-tokens", "anthropic-ratelimit-output-tokens-limit")
    assert told_limits(dict.fromkeys(names, value)) == Limits()


@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset-tokens"]), st.text()))
def test_whatever_headers_say_is_survived(headers: dict[str, str]) -> None:
    pause = pause_asked(headers | {"x-ratelimit-remaining-tokens": "0"})
    assert pause is None or 0 <= pause <= LONGEST_PAUSE
