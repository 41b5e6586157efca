"""Files that clients of the service uploaded, each kept for its project under its digest and name.

A file is at `PROJECT/HEX/NAME` below the folder of the settings (`files_path`), complete and checked as soon as it is
there, and never changed. What isn't used for `upload_days` is removed.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from cotrail.configuration.settings import settings
from cotrail.errors import InputError, UnknownNameError
from cotrail.models.schema.states import DEFAULT_PROJECT
from cotrail.services.access.actor import actor
from cotrail.services.data.file_references import FileReference, check_digest, check_file_name

SECONDS_A_DAY = 86_400.0

CLEANING_SECONDS = 3_600.0
"""The shortest pause between two searches for files that nobody uses."""


class UploadedFile(Struct, frozen=True, kw_only=True):
    """A file that is there; bytes: its size."""

    digest: str
    name: str
    bytes: int


def project_folder() -> Path:
    """The folder of the files of the project in whose name this thread works."""
    return settings().files_path / (actor().project or DEFAULT_PROJECT)


def place_of(digest: str, name: str) -> Path:
    """Where the file with this digest and name is kept; raises InputError where these are none."""
    return project_folder() / check_digest(digest).removeprefix("sha256:") / check_file_name(name)


def uploaded_file(digest: str, name: str | None = None) -> UploadedFile:
    """The file with this digest, of any name where none is given; raises UnknownNameError where it isn't there."""
    path = find_file(FileReference(digest=check_digest(digest), name=name))
    return UploadedFile(digest=digest, name=path.name, bytes=path.stat().st_size)


def find_file(reference: FileReference) -> Path:
    """The path of an uploaded file, which thereby counts as used; raises UnknownNameError where it isn't there."""
    for path in _candidates(reference):
        with suppress(FileNotFoundError):
            os.utime(path)
            return path
    raise UnknownNameError(
        f"no file {reference} is uploaded, or it was removed since; upload it: "
        f"PUT /v1/files/{reference.digest}?name={reference.name or 'NAME'}"
    )


def named_without_place(text: str) -> str:
    """The text, such as a message, with uploaded files by their names and not by where they are kept."""
    first, *behind = text.split(f"{settings().files_path}/")
    return first + "".join(map(_without_place, behind))


def _without_place(text: str) -> str:
    """The same where the text begins in the folder of a project."""
    _, _, below = text.partition("/")
    kind, _, name = below.partition("/")
    return name.partition("/")[2] if kind in ("folders", "jobs") else name


def uploaded_name(path: Path) -> str | None:
    """The name of an uploaded file or folder by its path; None for any other path."""
    return named_without_place(str(path)) if path.is_relative_to(settings().files_path) else None


def reference_of(path: str) -> str:
    """The reference to an uploaded file or folder by its path; raises InputError for any other path."""
    place = Path(path)
    if not place.is_relative_to(project_folder()):
        raise InputError(f"{path} isn't an uploaded file, and only these are there wherever a job is carried out")
    *folder, hexadecimal, name = place.relative_to(project_folder()).parts
    return str(FileReference(digest=f"sha256:{hexadecimal}", name=name, folder=bool(folder)))


def remove_unused(days: float) -> int:
    """Remove the files, folders and pieces, of all projects, that nobody used for so many days; returns how many."""
    until, removed = time.time() - days * SECONDS_A_DAY, 0
    for place, _, names in os.walk(settings().files_path, topdown=False):
        for path in (*(Path(place, name) for name in names), Path(place)):
            with suppress(OSError):  # it is gone already, or a folder in which something is
                if path.stat().st_mtime < until:
                    path.rmdir() if path.is_dir() else path.unlink()
                    removed += 1
    return removed


class Cleaning:
    """Removes what nobody uses any more, once an hour at most."""

    def __init__(self) -> None:
        self._due_at = 0.0

    def clean(self) -> None:
        """Remove it, if it is time to."""
        if time.monotonic() >= self._due_at:
            self._due_at = time.monotonic() + CLEANING_SECONDS
            remove_unused(settings().upload_days)


def _candidates(reference: FileReference) -> list[Path]:
    if reference.name is not None:
        return [place_of(reference.digest, reference.name)]
    folder = project_folder() / reference.digest.removeprefix("sha256:")
    return sorted(folder.iterdir()) if folder.is_dir() else []
