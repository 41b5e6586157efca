"""Kinds of questions, as the record holds them."""

from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.question_kinds import named, read_kinds, recorded_kinds
from tests.cases import each_case


@given(kinds=st.dictionaries(st.text(), st.text(), max_size=4))
def test_kinds_are_read_as_they_were_recorded(kinds: dict[str, str]) -> None:
    assert read_kinds(recorded_kinds(kinds)) == kinds
    assert list(read_kinds(recorded_kinds(kinds))) == list(kinds)


@each_case("kind", ["bridge", "2hop", "3", "null", '"span"', "[]", "{", "Sports {2}"])
def test_a_kind_of_an_earlier_version_is_a_type(kind: str) -> None:
    assert read_kinds(kind) == {"type": kind}


def test_a_question_without_a_kind_is_recorded_as_in_earlier_versions() -> None:
    assert recorded_kinds(named(type="", level="")) == ""
    assert read_kinds("") == {}
