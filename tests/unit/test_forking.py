"""Where a fork begins, and what a replay makes of steps that are given."""

import pytest
from msgspec.structs import replace

from cotrail.core.edits import Point, read_point, steps_before
from cotrail.core.history import Finished, Next
from cotrail.core.replay import advance, agreement
from cotrail.core.results import Retrieved
from cotrail.core.system import Answer, System
from cotrail.errors import InputError, ReplayMismatchError
from tests.cases import each_case
from tests.replay.driving import BINDING, FAILURE, found, record, search

KINDS = ("retrieve", "reason", "retrieve", "reason", "read")


@each_case(
    ("text", "point", "before"),
    [
        ("0", 0, 0),
        ("3", 3, 3),
        ("99", 99, 5),
        ("-1", -1, 4),
        ("-99", -99, 0),
        ("read", "read", 4),
        ("reason", "reason", 1),
        ("lookup", "lookup", 5),
    ],
)
def test_a_point_is_a_number_from_either_end_or_the_first_step_of_a_kind(text: str, point: Point, before: int) -> None:
    assert read_point(text) == point
    assert steps_before(point, KINDS) == before


def test_what_is_no_point_is_refused_with_the_kinds_that_there_are() -> None:
    with pytest.raises(InputError, match=r"'reader' is no step .*, read, lookup"):
        read_point("reader")


def one_after_another() -> System:
    first = yield search("new")
    assert isinstance(first, Retrieved)
    second = yield search(first.hits[0].paragraph.title)
    assert isinstance(second, Retrieved)
    return Answer(text=second.hits[0].paragraph.title)


def test_the_steps_that_agree_are_those_before_the_first_that_differs() -> None:
    same, next_ = record(search("new"), found("a")), record(search("a"), found("b"))
    other = record(search("b"), found("c"))
    assert agreement(one_after_another, [same, next_], BINDING) == 2
    assert agreement(one_after_another, [same, other], BINDING) == 1
    assert agreement(one_after_another, [other, next_], BINDING) == 0
    assert agreement(one_after_another, [same, next_, other], BINDING) == 2
    assert agreement(one_after_another, [], BINDING) == 0


def test_a_given_step_counts_whatever_the_code_asks_for_now() -> None:
    given = replace(record(search("old"), found("a")), given=True)
    outcome = advance(one_after_another, [given], BINDING)
    assert isinstance(outcome, Next)
    assert [(step.sequence, step.action) for step in outcome.steps] == [(1, search("a"))]
    following = record(search("a"), found("b"))
    assert advance(one_after_another, [given, following], BINDING) == Finished(Answer(text="b"))


def test_steps_behind_a_given_one_are_compared() -> None:
    given = replace(record(search("old"), found("a")), given=True)
    with pytest.raises(ReplayMismatchError, match="step 1"):
        advance(one_after_another, [given, record(search("old"), found("b"))], BINDING)


def test_a_given_step_has_the_kind_that_is_asked_for_and_a_result_that_can_be_read() -> None:
    given = replace(record(search("new"), found("a")), given=True)
    with pytest.raises(ReplayMismatchError, match="another kind"):
        advance(one_after_another, [replace(given, kind="reason")], BINDING)
    with pytest.raises(ReplayMismatchError, match="can't be read"):
        advance(one_after_another, [replace(given, outcome=None, unreadable="no hits")], BINDING)


def test_a_given_failure_is_thrown_into_the_system() -> None:
    given = replace(record(search("old"), FAILURE), given=True)
    assert advance(one_after_another, [given], BINDING).failure == FAILURE  # type: ignore[union-attr]
