from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from cotrail.common.validation import LONGEST_VALUE, explained, shown


class Inner(Struct, forbid_unknown_fields=True):
    count: Annotated[int, Meta(ge=1)] = 1
    key_variable: int = 1


class Outer(Struct, forbid_unknown_fields=True):
    name: str = ""
    parts: tuple[Inner, ...] = ()
    by_name: dict[str, Inner] = {}


def problem(given: Any) -> str:
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.convert(given, Outer)
    return explained(error.value, given)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": 5}, "Expected `str`, got `int` - at `$.name` (given: 5)"),
        ({"name": None}, "Expected `str`, got `null` - at `$.name` (given: null)"),
        ({"parts": [{}, {"count": 0}]}, "Expected `int` >= 1 - at `$.parts[1].count` (given: 0)"),
        ({"by_name": {"a": {}, "b": {"count": "x"}}}, 'got `str` - at `$.by_name.b.count` (given: "x")'),
        ({"by_name": {"a": {"count": 0}, "b": {"count": 2}}}, "Expected `int` >= 1 - at `$.by_name[...].count`"),
        ({"nam": 1}, "Object contains unknown field `nam`"),
        ({"parts": [{"cnt": 1}]}, "Object contains unknown field `cnt` - at `$.parts[0]`"),
        ([], "Expected `object`, got `array`"),
    ],
)
def test_a_message_shows_the_value_at_its_place(wrong: Any, said: str) -> None:
    assert problem(wrong).endswith(said)


def test_a_value_that_may_be_a_key_is_not_shown() -> None:
    assert "hunter2" not in problem({"parts": [{"key_variable": "hunter2"}]})
    assert shown("http://ada:hunter2@host/v1") == '"http://[secret]@host/v1"'


@given(st.recursive(st.text() | st.floats() | st.none(), st.lists, max_leaves=50))
def test_a_value_is_shown_on_one_short_line(value: Any) -> None:
    assert len(shown(value)) <= LONGEST_VALUE
    assert "\n" not in shown(value)
