"""The files that requests name, and the same requests with these in other places.

They stand apart from the requests, which know the store, since records of clients derive from them too.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, Self, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.demonstrations import RELEASED
from cotrail.errors import InputError
from cotrail.services.library.file_references import read_reference
from cotrail.systems.judge.rubric import BUILT_IN

Move = Callable[[str], str]
"""Gives the place of a file for another: the digest of a path that is uploaded, the path of a digest."""

PATH_FIELDS = ("questions", "official", "demonstrations", "title_demonstrations", "sets", "prompt", "plan")
"""The fields of a request for a run that are paths; in a run file they are relative to that file."""


class RunFiles(Struct, frozen=True):
    """The files of a request for a run."""

    @property
    def files(self) -> dict[str, Path]:
        """The files that the request names, by its fields."""
        paths = {field: getattr(self, field) for field in PATH_FIELDS}
        return {field: Path(name) for field, name in paths.items() if name and not is_bundled(field, name)}

    def with_files(self, move: Move) -> Self:
        """The same request with its files in the places that `move` gives."""
        return replace(self, **{field: move(str(path)) for field, path in self.files.items()})


class ForkFiles(Struct, frozen=True, kw_only=True):
    """The file of a request for a fork."""

    plan: str | None = None

    def with_files(self, move: Move) -> Self:
        """The same request with its file in the place that `move` gives."""
        return self if self.plan is None else replace(self, plan=move(self.plan))


class JudgeFiles(Struct, frozen=True, kw_only=True):
    """The files of a request for a judge's run."""

    rubric: str = "correct"
    others: dict[str, Any] = {}

    def with_files(self, move: Move) -> Self:
        """The same request with its files in the places that `move` gives."""
        others = {key: move(str(value)) if key in PATH_FIELDS else value for key, value in self.others.items()}
        return replace(self, rubric=self.rubric if self.rubric in BUILT_IN else move(self.rubric), others=others)


class IndexFiles(Struct, frozen=True, kw_only=True):
    """The files of a request for a corpus."""

    files: tuple[str, ...]
    places: tuple[str, ...] = ()

    def with_files(self, move: Move) -> Self:
        """The same request with its files in the places that `move` gives."""
        return replace(self, files=tuple(map(move, self.files)), places=self.places or _places(self.files))


class ExperimentFiles(Struct, frozen=True, kw_only=True):
    """The files of a request for an experiment."""

    files: dict[str, str] = {}

    def with_files(self, move: Move) -> Self:
        """The same request with its files in the places that `move` gives."""
        return replace(self, files={name: move(path) for name, path in self.files.items()})


def is_bundled(field: str, name: str) -> bool:
    """Return whether the value is no path but names the demonstration sets that come with cotrail."""
    return field == "sets" and name == RELEASED


def _places(files: Iterable[str]) -> tuple[str, ...]:
    """The paths of files next to each other; the names of uploaded ones."""
    try:
        references = [read_reference(each) for each in files]
    except InputError:
        paths = [Path(os.path.abspath(each)) for each in files]  # noqa: PTH100 - links keep their names
        root = os.path.commonpath([path.parent for path in paths]) if paths else ""
        return tuple(str(PurePosixPath(path.relative_to(root))) for path in paths)
    return tuple(each.name or each.digest for each in references)


@runtime_checkable
class NamesFiles(Protocol):
    """A request with files in it."""

    def with_files(self, move: Move) -> Any:
        """The same request with the files in the places that `move` gives."""
        ...


def moved(value: Any, move: Move) -> Any:
    """A parameter's value with the files that it names in other places: a path, paths, or a request that has some."""
    match value:
        case Path():
            return Path(move(str(value)))
        case NamesFiles():
            return value.with_files(move)
        case tuple() | list():
            return type(value)(moved(each, move) for each in value)
    return value
