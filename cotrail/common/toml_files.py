"""Bounded reading of TOML files: settings, lists of models, experiments."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from cotrail.common.refusals import refusal
from cotrail.common.text_files import MAX_DEPTH, read_whole, skip_mark
from cotrail.errors import InputError

T = TypeVar("T", bound=Struct)

MAX_TOML_BYTES = 256 * 1024
"""Maximum size of a file; hundreds of models fill a tenth of it."""

MAX_TOML_LINE = 10_000
"""Maximum bytes of a line; tomllib takes time quadratic in the number of parts of a dotted key."""


def read_toml(path: Path, what: str = "") -> dict[str, Any]:
    """Read a TOML file; InputError names the place that isn't TOML or can't be used.

    what: the name of the file in errors, e.g. `the list of models`. OSError where it can't be read.
    """
    name = f"{what} {path}".strip()
    with path.open("rb") as file:
        skip_mark(file, name, InputError)
        raw = read_whole(file, name, InputError, MAX_TOML_BYTES)
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if len(line) > MAX_TOML_LINE:
            raise InputError(f"{name}, line {number}: the line is longer than {MAX_TOML_LINE:,} bytes; divide it")
    try:
        document = tomllib.loads(raw.decode())
    except UnicodeDecodeError as error:
        number = raw.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{name}, line {number}: not UTF-8 text; check that it is a TOML file, saved as UTF-8"
        ) from error
    except RecursionError as error:
        raise InputError(_nested(name)) from error
    except ValueError as error:  # TOMLDecodeError is one; so is what numbers with too many digits raise.
        raise InputError(f'{name} isn\'t TOML: {error}; a line is like `key = "text"`, or `key = 4`') from error
    for depth, value in _values(document):
        if depth > MAX_DEPTH:
            raise InputError(_nested(name))
        if isinstance(value, str) and "\0" in value:
            raise InputError(f"{name} holds a NUL character (\\u0000), which can't be stored; take it out")
    return document


def read_toml_or_empty(path: Path, what: str) -> dict[str, Any]:
    """The same, empty where there is no file; InputError also where it can't be read."""
    try:
        return read_toml(path, what)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"{what} {path} can't be read ({error.strerror}); check the path") from error


def read_toml_as(path: Path, what: str, kind: type[T]) -> T:
    """Read a TOML file of settings as a record, one without any values where there is no file.

    Raises InputError, which names the file as `what` and the key that is wrong.
    """
    document = read_toml_or_empty(path, what)
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{what} {path} is malformed: {refusal(error, kind, document)}; correct it") from error


def _nested(name: str) -> str:
    return f"{name} isn't usable: lists or tables stand more than {MAX_DEPTH} deep within one another; flatten them"


def _values(tree: Any) -> Iterator[tuple[int, Any]]:
    """Yield every key and value of the tree with its depth; without recursion, as the tree may be deep."""
    waiting = [(0, tree)]
    while waiting:
        depth, value = waiting.pop()
        yield depth, value
        if isinstance(value, dict):
            waiting += ((depth + 1, part) for pair in value.items() for part in pair)
        elif isinstance(value, list):
            waiting += ((depth + 1, part) for part in value)
