"""The files that requests name, references to uploaded ones, and the same requests with these in other places.

`sha256:HEX/NAME` is the file with that content that was uploaded under that name; `sha256:HEX` any with that content.
`folder:sha256:HEX/NAME` is a folder, whose list of files (`cotrail.services.library.uploaded_files`) has that content.
All of it stands apart from the requests, which know the store, since records of clients derive from them too.
"""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, Self, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.printable_text import cut
from cotrail.core.demonstrations import RELEASED
from cotrail.errors import InputError
from cotrail.systems.judge.rubric import RUBRICS

FOLDER = "folder:"

MOST_NAME_BYTES = 255

_REFERENCE = re.compile(r"(?P<folder>folder:)?(?P<digest>sha256:[0-9a-f]{64})(/(?P<name>.+))?", re.DOTALL)
_DIGEST = re.compile("sha256:[0-9a-f]{64}")


class FileReference(Struct, frozen=True, kw_only=True):
    """A file, or a folder by the list of its files; name: None for any."""

    digest: str
    name: str | None = None
    folder: bool = False

    def __str__(self) -> str:
        return f"{FOLDER if self.folder else ''}{self.digest}{f'/{self.name}' if self.name else ''}"


class Upload(Struct, frozen=True, kw_only=True):
    """A file that comes in pieces; offset: how many of its bytes are there; done: whether it is complete and kept."""

    upload: str
    digest: str
    name: str
    bytes: int
    offset: int = 0
    done: bool = False


def read_reference(text: str) -> FileReference:
    """The reference that a request has in place of a path; raises InputError where it is something else."""
    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise InputError(
            f"{cut(text, 200)!r} isn't a file of the service: upload the file (PUT /v1/files/DIGEST?name=NAME), and "
            "name it by its digest, as sha256:HEX or sha256:HEX/NAME"
        )
    name = found["name"]
    return FileReference(
        digest=found["digest"], name=None if name is None else check_file_name(name), folder=bool(found["folder"])
    )


def check_digest(digest: str) -> str:
    """The digest; raises InputError where it isn't one."""
    if not _DIGEST.fullmatch(digest):
        raise InputError(f"{cut(digest, 100)!r} isn't a digest: write sha256: and 64 digits of 0-9 and a-f")
    return digest


def check_file_name(name: str) -> str:
    """The name of a file; raises InputError where it has a folder in it, or isn't a name."""
    fits = 0 < len(name.encode("utf-8", "replace")) <= MOST_NAME_BYTES
    if not fits or not name.isprintable() or "/" in name or "\\" in name or not name.strip("."):
        raise InputError(
            f"{cut(name, 100)!r} isn't a name for a file: use up to {MOST_NAME_BYTES} bytes without / and \\, and not "
            "dots alone"
        )
    return name


def check_relative(name: str) -> PurePosixPath:
    """The path of a file in a folder, such as `notes/a.md`; raises InputError where it may lead out of the folder."""
    path = PurePosixPath(name)
    for part in path.parts or ("",):
        check_file_name(part)
    return path


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
        others = {key: move(str(value)) if key in PATH_FIELDS else value for key, value in self.others.items()}
        return replace(self, rubric=self.rubric if self.rubric in RUBRICS else move(self.rubric), others=others)


class IndexFiles(Struct, frozen=True, kw_only=True):
    """The files of a request for a corpus."""

    files: tuple[str, ...]
    places: tuple[str, ...] = ()

    def with_files(self, move: Move) -> Self:
        return replace(self, files=tuple(map(move, self.files)), places=self.places or _places(self.files))


class ExperimentFiles(Struct, frozen=True, kw_only=True):
    """The files of a request for an experiment."""

    files: dict[str, str] = {}

    def with_files(self, move: Move) -> Self:
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
