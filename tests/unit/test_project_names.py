"""Names of what projects have of their own, in one store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.errors import InputError
from cotrail.services.access.grants import is_own, meant_by, seen_name, stored_name
from tests.cases import each_case

NAMES = st.from_regex(r"[a-z][a-z._-]{0,5}", fullmatch=True)


@each_case(
    ("name", "project", "granted", "stored"),
    [
        ("mine", None, None, ("mine",)),
        ("a~mine", None, None, ("a~mine",)),
        ("mine", "default", None, ("mine",)),
        ("mine", "default", [], ("mine",)),
        ("a~mine", "default", None, ()),
        ("mine", "a", None, ("a~mine", "mine")),
        ("mine", "a", [], ("a~mine",)),
        ("mine", "a", ["mine"], ("a~mine", "mine")),
        ("a~mine", "a", [], ("a~mine",)),
        ("b~mine", "a", None, ()),
        ("b~mine", "a", ["b~mine"], ("b~mine",)),
        ("b~other", "a", ["b~mine"], ()),
    ],
)
def test_a_name_means_what_the_project_may_see(
    name: str, project: str | None, granted: list[str] | None, stored: tuple[str, ...]
) -> None:
    assert meant_by(name, project, granted) == stored


@given(name=NAMES, project=st.none() | NAMES, others=NAMES, granted=st.none() | st.lists(NAMES))
def test_what_is_seen_is_found_by_the_name_by_which_it_is_seen(
    name: str, project: str | None, others: str, granted: list[str] | None
) -> None:
    for stored in (name, f"{others}~{name}", f"{project}~{name}"):
        seen = seen_name(stored, project, granted)
        if seen is not None:
            assert stored in meant_by(seen, project, granted)
        elif project is not None:
            assert stored not in meant_by(stored, project, granted)


@given(name=NAMES, project=st.none() | NAMES)
def test_what_a_project_makes_is_its_own(name: str, project: str | None) -> None:
    stored = stored_name(name, project)
    assert is_own(stored, project)
    assert seen_name(stored, project, []) == (stored if project is None else name)
    assert not is_own(f"other.{project}~{name}", "p")


def test_no_name_of_a_users_has_the_sign_between_projects_and_names() -> None:
    with pytest.raises(InputError, match="stands between a project"):
        stored_name("a~mine", "b")
