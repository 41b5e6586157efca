"""A name that nobody knows is answered with the nearest one and all that there are."""

from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from cotrail.common.nearest import nearest, unknown
from cotrail.common.refusals import refusal
from cotrail.systems.registry import SYSTEMS
from tests.cases import each_case

DATASETS = ("hotpotqa", "2wikimultihopqa", "musique", "iirc")


@each_case(
    ("written", "meant"),
    [
        ("hotpot", "hotpotqa"),
        ("hotpot_qa", "hotpotqa"),
        ("HotpotQA", "hotpotqa"),
        ("2wiki", "2wikimultihopqa"),
        ("musiqeu", "musique"),
        ("squad", None),
        ("", None),
    ],
)
def test_the_nearest_name_is_the_one_that_was_meant(written: str, meant: str | None) -> None:
    assert nearest(written, DATASETS) == meant


@given(st.text(), st.lists(st.text()))
def test_whatever_is_written_the_nearest_name_is_a_known_one(written: str, known: list[str]) -> None:
    assert nearest(written, known) in {None, *known}


@given(st.sampled_from(SYSTEMS))
def test_a_known_name_is_its_own_nearest(spec: Any) -> None:
    assert nearest(spec.name.upper(), {each.name for each in SYSTEMS}) == spec.name


def test_an_unknown_name_is_answered_with_the_nearest_one_and_all() -> None:
    said = "there is no dataset 'hotpot' (did you mean hotpotqa?); there are: hotpotqa, 2wikimultihopqa, musique, iirc"
    assert unknown("dataset", "hotpot", DATASETS) == said
    assert unknown("corpus", "mine", ()) == "there is no corpus 'mine'; there are: none yet"


class Grid(Struct, frozen=True, forbid_unknown_fields=True):
    """A table within a table."""

    counts: tuple[int, ...] = ()
    size: Literal[1, 2] = 1
    goals: tuple[Literal["retrieval", "qa"], ...] = ()
    order: tuple[Literal["yes", "no"], Literal["yes", "no"]] = ("yes", "no")


class First(Struct, frozen=True, forbid_unknown_fields=True, tag_field="protocol", tag="first"):
    """One kind of file."""

    name: str
    grid: Grid = Grid()
    grids: dict[str, Grid] = {}
    counts: dict[Literal["small", "large"], int] = {}


class Second(Struct, frozen=True, forbid_unknown_fields=True, tag_field="protocol", tag="second"):
    """Another kind of file."""

    title: str = ""


@each_case(
    ("written", "said"),
    [
        ({}, "the key `name` is missing; the keys are: name, grid, grids, counts"),
        ({"name": "x", "gird": 1}, "there is no key `gird` (did you mean grid?); there are: name, grid, grids, counts"),
        ({"name": "x", "grid": {"count": []}}, "no key `count` in `grid` (did you mean counts?); there"),
        ({"name": "x", "grids": {"a.b": {"count": []}}}, "no key `count` in `grids.a.b` (did you mean counts?)"),
        (
            {"name": "x", "grid": {"goals": ["retrieve"]}},
            "`grid.goals[0]` can't be 'retrieve' (did you mean retrieval?)",
        ),
        ({"name": "x", "grid": {"order": ["no", "yess"]}}, "`grid.order[1]` can't be 'yess' (did you mean yes?)"),
        ({"name": "x", "counts": {"smal": 1}}, "`counts` can't be 'smal' (did you mean small?); there"),
        ({"name": "x", "grid": {"size": 5}}, "`grid.size` can't be '5'; there are: 1, 2"),
        ({"name": 3}, '`name` must be text in quotation marks, e.g. `"3"`, not 3'),
        ({"name": "x", "grid": "costs $.50"}, '`grid` must be an object `{...}`, not "costs $.50"'),
        ({"protocol": "second", "titel": "x"}, "there is no key `titel` (did you mean title?); there are: title"),
        ({"protocol": "secnd"}, "`protocol` can't be 'secnd' (did you mean second?); there are: first, second"),
    ],
)
def test_a_key_or_choice_that_is_unknown_is_answered_with_what_there_is(written: dict[str, Any], said: str) -> None:
    described = {"protocol": "first", **written}
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert(described, First | Second)
    assert said in refusal(refused.value, First | Second, described)
