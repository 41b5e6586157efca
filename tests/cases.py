"""A table of cases as one test: all are tried, and those that fail are told together, each by its name."""

import functools
import inspect
import reprlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest

Test = Callable[..., None]
Table = Iterable[Any] | Callable[[], Iterable[Any]]
Ids = Iterable[object] | Callable[[Any], object]

FAILURES = (Exception, pytest.fail.Exception, pytest.skip.Exception)
"""What is told of a case; a skip too, as it would hide the cases behind it."""


class Case(NamedTuple):
    """One row of a table."""

    name: str
    values: dict[str, Any]


def each_case(names: str | tuple[str, ...], table: Table, ids: Ids | None = None) -> Callable[[Test], Test]:
    """Take arguments as `pytest.mark.parametrize` does, but make one test: for cases that need no set-up of their own.

    The cases share the test's fixtures. A table that takes long to make is given as the function that makes it.
    """
    words = (names,) if isinstance(names, str) else names

    def decorated(test: Test) -> Test:
        @functools.wraps(test)
        def tried(**fixtures: object) -> None:
            cases = _cases(words, [(row,) if isinstance(names, str) else tuple(row) for row in _rows(table)], ids)
            assert cases, "the table is empty"
            failed = []
            for case in cases:
                try:
                    test(**fixtures, **case.values)
                except FAILURES as error:
                    error.add_note(f"In the case {case.name}")
                    failed.append((case.name, error))
                    if "from pytest-timeout" in str(error):  # nothing would bound the cases that are left
                        break
            if failed:
                told = "; ".join(name for name, _ in failed)
                raise BaseExceptionGroup(f"{len(failed)} of {len(cases)} cases: {told}", [error for _, error in failed])

        own = inspect.signature(test)
        left = [parameter for name, parameter in own.parameters.items() if name not in words]
        tried.__signature__ = own.replace(parameters=left)  # type: ignore[attr-defined]
        return tried

    return decorated


def _rows(table: Table) -> Iterable[Any]:
    return table if isinstance(table, Iterable) else table()


def _cases(words: tuple[str, ...], rows: list[tuple[Any, ...]], ids: Ids | None) -> list[Case]:
    own = [", ".join(_name(value, ids) for value in row) for row in rows] if ids is None or callable(ids) else ids
    return [Case(str(name), dict(zip(words, row, strict=True))) for name, row in zip(own, rows, strict=True)]


def _name(value: object, ids: Callable[[Any], object] | None) -> str:
    name = ids(value) if ids else None
    return reprlib.repr(value) if name is None else str(name)
