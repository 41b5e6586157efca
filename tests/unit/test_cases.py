"""A table in one test hides none of its cases."""

import inspect
from collections.abc import Callable

import pytest

from tests.cases import each_case


def failing(test: Callable[..., None], **fixtures: object) -> tuple[str, list[str]]:
    """What is said of the cases that fail, and each one's notes."""
    with pytest.raises(BaseExceptionGroup) as raised:
        test(**fixtures)
    return raised.value.message, [error.__notes__[0] for error in raised.value.exceptions]


def test_all_cases_are_tried_and_those_that_fail_are_named() -> None:
    tried = []

    @each_case("number", range(5))
    def test(number: int) -> None:
        tried.append(number)
        if number == 3:
            pytest.fail("three")
        assert number != 1

    assert failing(test) == ("2 of 5 cases: 1; 3", ["In the case 1", "In the case 3"])
    assert tried == [0, 1, 2, 3, 4]


@each_case(
    ("ids", "said"),
    [
        (None, "1 of 2 cases: 2, 'b'"),
        (["one", "two"], "1 of 2 cases: two"),
        (lambda value: f"<{value}>" if value == 2 else None, "1 of 2 cases: <2>, 'b'"),
    ],
)
def test_cases_have_the_names_that_parameters_would_have(ids: object, said: str) -> None:
    @each_case(("number", "text"), [(1, "a"), (2, "b")], ids=ids)  # type: ignore[arg-type]
    def test(number: int, text: str, fixture: str) -> None:
        assert (number, fixture) == (1, "given")

    assert list(inspect.signature(test).parameters) == ["fixture"]
    assert failing(test, fixture="given")[0] == said


def test_tables_combine() -> None:
    tried = []

    @each_case("first", "ab")
    @each_case("second", lambda: [1, 2])
    def test(first: str, second: int) -> None:
        tried.append((first, second))
        assert (first, second) != ("a", 2)

    assert failing(test)[0] == "1 of 2 cases: 'a'"
    assert tried == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


def test_a_table_without_cases_is_a_mistake() -> None:
    @each_case("number", [])
    def test(number: int) -> None:
        """Never called."""

    with pytest.raises(AssertionError, match="empty"):
        test()


def test_a_case_that_is_skipped_fails() -> None:
    @each_case("number", range(2))
    def test(number: int) -> None:
        if number == 0:
            pytest.skip("no server")

    assert failing(test)[0] == "1 of 2 cases: 0"


def test_no_case_is_tried_once_the_time_is_over() -> None:
    tried = []

    @each_case("number", range(3))
    def test(number: int) -> None:
        tried.append(number)
        pytest.fail("Timeout (>300.0s) from pytest-timeout.")

    assert failing(test)[0] == "1 of 3 cases: 0"
    assert tried == [0]
