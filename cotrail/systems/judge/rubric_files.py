"""Rubrics by what people name: a built-in one, or a file of their own."""

from pathlib import Path
from typing import Any

import msgspec

from cotrail.common.nearest import unknown
from cotrail.common.refusals import refusal
from cotrail.common.toml_files import read_toml
from cotrail.errors import InputError, UnknownNameError
from cotrail.systems.judge.rubric import BUILT_IN, Rubric, built_in


def find_rubric(given: str) -> Rubric:
    """The built-in rubric of that name, or the one in that TOML file; raises UnknownNameError, InputError."""
    if given in BUILT_IN:
        return built_in(given)
    path = Path(given)
    if path.suffix == ".toml" or path.is_file():
        return _read(path)
    raise UnknownNameError(f"{unknown('rubric', given, BUILT_IN)}; or name a TOML file of your own")


def _read(path: Path) -> Rubric:
    try:
        values: dict[str, Any] = read_toml(path, "the rubric")
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}); check the path") from error
    try:
        rubric = msgspec.convert(values, Rubric)
    except msgspec.ValidationError as error:
        raise InputError(f"the rubric {path}: {refusal(error, Rubric, values)}; correct it") from error
    if rubric.name in BUILT_IN and rubric != built_in(rubric.name):
        raise InputError(f"the rubric {path} isn't the built-in {rubric.name!r}: give it a name of its own")
    return rubric
