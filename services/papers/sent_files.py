"""Experiments that are sent elsewhere: what their file says, with the files that it names beside it."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.printable_text import cut
from cotrail.errors import InputError
from cotrail.services.runs.requests import read_toml_file

MANY = "{M}"
"""Stands in the names of IRCoT's demonstration files for a number."""

OUTSIDE = "outside"
"""The folder in which files stand that the experiment's file names above its own folder."""


class ExperimentRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Request for an experiment: what its file says, and the files and folders that it names, by their names there.

    reuse: whether its runs adopt steps from one another.
    """

    experiment: dict[str, Any]
    files: dict[str, str] = {}
    reuse: bool = True

    def with_files(self, move: Callable[[str], str]) -> "ExperimentRequest":
        """The same request with its files in the places that `move` gives."""
        return replace(self, files={name: move(path) for name, path in self.files.items()})


def read_to_send(path: Path, *, reuse: bool) -> ExperimentRequest:
    """An experiment's file with the files and folders that it names; InputError where it can't be read."""
    described = read_toml_file(path)
    named = {text: inside for text in _texts(described) if (inside := _inside(path.parent, text)) is not None}
    files = {name: str(place) for text, inside in named.items() for name, place in _found(path.parent, text, inside)}
    return ExperimentRequest(experiment=_renamed(described, named), files=files, reuse=reuse)


def check_stays_inside(described: Mapping[str, Any]) -> None:
    """Raises InputError where an experiment that was sent names a path outside of its folder."""
    for text in _texts(described):
        path = PurePosixPath(text)
        if path.is_absolute() or ".." in path.parts or text.startswith("~"):
            raise InputError(f"{cut(text, 200)!r} leads out of the experiment's folder: name files beside each other")


def _inside(folder: Path, text: str) -> str | None:
    """The name in the experiment's folder of a file or folder that a value names; None where it names none."""
    if not text or "\n" in text or not any(True for _ in _places(folder, text)):
        return None
    relative = os.path.relpath(folder / text, folder)
    parts = PurePosixPath(relative).parts
    above = parts.count("..")
    return str(PurePosixPath(*([f"{OUTSIDE}{above}"] if above else []), *parts[above:]))


def _places(folder: Path, text: str) -> Iterator[Path]:
    """The files or folders that a value names."""
    try:
        if MANY in text:
            place = folder / text
            yield from sorted(place.parent.glob(place.name.replace(MANY, "*")))
        elif (folder / text).exists():
            yield folder / text
    except OSError:  # a text that is too long for a name, say
        return


def _found(folder: Path, text: str, inside: str) -> Iterator[tuple[str, Path]]:
    for place in _places(folder, text):
        yield (inside if MANY not in text else str(PurePosixPath(inside).with_name(place.name))), place


def _texts(value: Any) -> Iterator[str]:
    """The texts of the values of a tree."""
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ():
        yield from _texts(each)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, Mapping):
        return {key: _renamed(each, names) for key, each in value.items()}
    return [_renamed(each, names) for each in value] if isinstance(value, list) else value
