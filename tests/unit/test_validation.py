"""A value that doesn't fit is refused with its place, what may stand there, an example, and the value itself."""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from cotrail.common.refusals import LONGEST_VALUE, refusal, shown
from tests.cases import each_case

Count = Annotated[int, Meta(ge=1)]


class Inner(Struct, forbid_unknown_fields=True):
    count: Count = 1
    key_variable: int = 1


class Outer(Struct, forbid_unknown_fields=True):
    name: str = ""
    parts: tuple[Inner, ...] = ()
    by_name: dict[str, Inner] = {}
    limit: Count | None = None
    share: Annotated[float, Meta(ge=0, le=1)] = 0.0
    weight: Annotated[float, Meta(gt=0)] = 1.0
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    fast: bool = False
    answers: tuple[str, ...] = ()
    counts: Annotated[tuple[Count, ...], Meta(min_length=1)] = (1,)
    sized: Annotated[str, Meta(max_length=3)] = ""
    named: Annotated[str, Meta(pattern="^[a-z]+$", description="a name of letters", examples=["abc"])] | None = None
    either: str | Inner = ""
    level: Literal[1, 2] | None = None
    pair: tuple[Literal["yes", "no"], Literal["yes", "no"]] = ("yes", "no")
    numbered: dict[int, Count] = {}
    path: Path = Path()

    def __post_init__(self) -> None:
        if self.name == "both":
            raise ValueError("the name can't be both")


def problem(given: Any) -> str:
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.convert(given, Outer, dec_hook=lambda _, value: Path(value))
    return refusal(error.value, Outer, given)


WHOLE = "must be a whole number, 1 or more"


@each_case(
    ("wrong", "said"),
    [
        ({"name": 5}, '`name` must be text in quotation marks, e.g. `"5"`, not 5'),
        ({"name": None}, "`name` must be text in quotation marks, not null"),
        ({"name": True}, '`name` must be text in quotation marks, e.g. `"true"`, not true'),
        ({"parts": [{}, {"count": 0}]}, f"`parts[1].count` {WHOLE}, e.g. `1`, not 0"),
        ({"by_name": {"a": {}, "b": {"count": "7"}}}, f'`by_name.b.count` {WHOLE}, e.g. `7`, not "7"'),
        ({"by_name": {"a": {"count": 0}, "b": {"count": 2}}}, f"`by_name.a.count` {WHOLE}, e.g. `1`, not 0"),
        ({"limit": "four"}, f'`limit` {WHOLE}, e.g. `4`, not "four"'),
        ({"limit": 1.5}, f"`limit` {WHOLE}, e.g. `4`, not 1.5"),
        ({"limit": True}, f"`limit` {WHOLE}, e.g. `4`, not true"),
        ({"share": 3}, "`share` must be a number from 0 to 1, e.g. `1`, not 3"),
        ({"share": float("inf")}, "`share` must be a number from 0 to 1, e.g. `1`, not inf"),
        ({"share": float("nan")}, "`share` must be a number from 0 to 1, e.g. `1`, not nan"),
        ({"weight": 0}, "`weight` must be a number, above 0, e.g. `1.0`, not 0"),
        ({"seed": 10**30}, "`seed` must be a whole number from 0 to 2,147,483,647, e.g. `4`, not 1000000"),
        ({"fast": "True"}, '`fast` must be true or false, e.g. `true`, not "True"'),
        ({"answers": "a"}, '`answers` must be a list, each entry text in quotation marks, e.g. `["a"]`, not "a"'),
        ({"answers": ["a", 7]}, '`answers[1]` must be text in quotation marks, e.g. `"7"`, not 7'),
        (
            {"counts": []},
            "`counts` must be a list, each entry a whole number, 1 or more, with at least one entry, e.g. `[1]`, "
            "not []",
        ),
        ({"sized": "four"}, '`sized` must be text in quotation marks, with 3 characters at most, not "four"'),
        ({"named": "A B"}, '`named` must be a name of letters, e.g. `"abc"`, not "A B"'),
        ({"either": 3}, '`either` must be text in quotation marks or an object `{...}`, e.g. `"3"`, not 3'),
        ({"either": {"cont": 3}}, "there is no key `cont` in `either` (did you mean count?)"),
        ({"level": 3}, "`level` can't be '3'; there are: 1, 2"),
        ({"level": "1"}, '`level` must be 1 or 2, e.g. `1`, not "1"'),
        ({"level": []}, "`level` must be 1 or 2, e.g. `1`, not []"),
        ({"pair": ["yes"]}, "`pair` must have 2 entries, not 1"),
        ({"numbered": {"3": 0}}, f"`numbered.3` {WHOLE}, e.g. `4`, not 0"),
        ({"path": 3}, '`path` must be text in quotation marks, e.g. `"3"`, not 3'),
        ({"nam": 1}, "there is no key `nam` (did you mean name?)"),
        ({"parts": [{"cnt": 1}]}, "there is no key `cnt` in `parts[0]` (did you mean count?)"),
        ({"parts": {}}, "`parts` must be a list, each entry an object `{...}`, not {}"),
        ([], "this must be an object `{...}`, not []"),
        ({"name": "both"}, "the name can't be both"),
    ],
)
def test_a_message_says_what_may_stand_there_and_shows_the_value(wrong: Any, said: str) -> None:
    assert problem(wrong).startswith(said)


def test_a_value_that_may_be_a_key_is_not_shown() -> None:
    assert problem({"parts": [{"key_variable": "hunter2"}]}) == "`parts[0].key_variable` must be a whole number"
    assert problem({"parts": [{"key_variable": "72"}]}) == "`parts[0].key_variable` must be a whole number"
    assert shown("http://ada:hunter2@host/v1") == '"http://[secret]@host/v1"'


@given(st.recursive(st.text() | st.floats() | st.none(), st.lists, max_leaves=50))
def test_a_value_is_shown_on_one_short_line(value: Any) -> None:
    assert len(shown(value)) <= LONGEST_VALUE
    assert "\n" not in shown(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(Outer.__struct_fields__), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(Outer.__struct_fields__), JSON, max_size=2))
def test_whatever_is_refused_is_refused_in_plain_words(written: dict[str, Any]) -> None:
    said = ""
    try:
        msgspec.convert(written, Outer, dec_hook=lambda _, value: Path(value) if isinstance(value, str) else None)
    except msgspec.ValidationError as error:
        said = refusal(error, Outer, written)
    assert not {"Expected", "`str`", "`int`", "$."} & set(said.split())
