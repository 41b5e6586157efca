"""Kinds of questions, as the record holds them."""

from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.questions import named, read_kinds, recorded_kinds


@given(kinds=st.dictionaries(st.text(), st.text(), max_size=4))
def test_kinds_are_read_as_they_were_recorded(kinds: dict[str, str]) -> None:
    assert read_kinds(recorded_kinds(kinds)) == kinds
    assert list(read_kinds(recorded_kinds(kinds))) == list(kinds)


def test_a_question_without_a_kind_is_recorded_as_no_text() -> None:
    assert recorded_kinds(named(type="", level="")) == ""
    assert read_kinds("") == {}
