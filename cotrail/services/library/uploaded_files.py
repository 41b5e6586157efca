"""Files that clients of the service uploaded, each kept for its project under its digest and name.

A file is at `PROJECT/HEX/NAME` below the folder of the settings (`files_path`), complete and checked as soon as it is
there, and never changed. What isn't used for `upload_days` is removed.
"""

import fcntl
import os
import shutil
import struct
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Self

import msgspec
from msgspec import Struct

from cotrail.common.humanize import size as in_words
from cotrail.common.printable_text import cut
from cotrail.configuration.settings import settings
from cotrail.errors import InputError, QuotaExceededError, TooLargeError, UnknownNameError
from cotrail.models.queries.projects import find_project
from cotrail.models.schema.states import DEFAULT_PROJECT
from cotrail.services.actor import Scope, actor
from cotrail.services.library.named_files import (
    FileReference,
    check_digest,
    check_file_name,
    check_relative,
    read_reference,
)
from cotrail.services.operations.operation import operation
from cotrail.services.store import reading

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


@operation("uploads.file", "GET", "/files/{digest}", Scope.READ)
def uploaded_file(digest: str, name: str | None = None) -> UploadedFile:
    """Say whether a file is there, by its digest (`sha256:HEX`), and by its name where one is given."""
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


# The room that a project has for its uploaded files, and for the folders that are made of them.
#
# How much they take is in a file next to them and is raised before anything is written, so that requests at the same
# time don't exceed it together, and none has to look at all files. What was removed since is found by looking at them
# once the room seems to be used up.

ENTRY_BYTES = 4096
"""What a file or a folder takes in addition to its content, as in most file systems."""

LOOK_SECONDS = 5.0
"""The shortest pause between two looks at all files of a project."""

_COUNT = ".taken"
_FORM = struct.Struct("<qd")
"""How much is taken, and when it was looked at, in seconds since 1970: written at once, whatever is killed."""


class Room:
    """Room in a folder; most: the most bytes that are taken there, None for any number."""

    def __init__(self, folder: Path, project: str, most: int | None) -> None:
        self._folder = folder
        self._project = project
        self._most = most

    @classmethod
    def of_project(cls, entries: int = 0) -> Self:
        """That of the project in whose name this thread works, with so many files and folders taken (`take`).

        Raises UnavailableError where the store is away.
        """
        name = actor().project or DEFAULT_PROJECT
        with reading() as connection:
            project = find_project(connection, name)
        room = cls(project_folder(), name, None if project is None else project.stored_bytes)
        room.take(entries=entries)
        return room

    def take(self, size: int = 0, entries: int = 0) -> None:
        """Take so many bytes, and so many files and folders; raises QuotaExceededError where there is no room."""
        self._check(size + entries * ENTRY_BYTES, taking=True)

    def check(self, size: int) -> None:
        """Raise QuotaExceededError where there is no room for so many bytes."""
        self._check(size, taking=False)

    def _check(self, size: int, *, taking: bool) -> None:
        if self._most is None:  # what comes now isn't counted: the next count has to look
            (self._folder / _COUNT).unlink(missing_ok=True)
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / _COUNT).open("a+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            known = file.read()
            taken, looked_at = _FORM.unpack(known) if len(known) == _FORM.size else (0, 0.0)
            if not looked_at or (taken + size > self._most and abs(time.time() - looked_at) >= LOOK_SECONDS):
                taken, looked_at = _taken(self._folder), time.time()
            if taken + size > self._most:
                self._write(file.fileno(), taken, looked_at)
                raise QuotaExceededError(
                    f"the uploaded files of the project {self._project} would take {in_words(taken + size)}, and may "
                    f"take {in_words(self._most)}; wait until those that nobody uses are removed, or ask for a larger "
                    "quota"
                )
            self._write(file.fileno(), taken + size if taking else taken, looked_at)

    def _write(self, descriptor: int, taken: int, looked_at: float) -> None:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, _FORM.pack(taken, looked_at))


def _taken(folder: Path) -> int:
    """What the files and folders below take; a file with several names counts once."""
    sizes: dict[int, int] = {}
    entries, waiting = 0, [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                for each in found:
                    entries += 1
                    if each.is_dir(follow_symlinks=False):
                        waiting.append(Path(each.path))
                    else:
                        stat = each.stat(follow_symlinks=False)
                        sizes[stat.st_ino] = stat.st_size
        except FileNotFoundError:  # it was removed meanwhile; what was found of it counts
            continue
    return sum(sizes.values()) + entries * ENTRY_BYTES


# Folders that clients upload: a list of their files, which are uploaded by themselves, made a folder again.
#
# The list is a JSON object of paths in the folder and references. A file that only counts, because nothing reads it,
# has none, and is empty here. Lists may name folders, whose lists name further ones: what all of them come to is
# counted before a folder is made.

MOST_FILES = 100_000
"""The largest number of files and folders that the lists of a request come to."""

MOST_LIST_BYTES = 64 * 2**20
"""The largest size of all lists that are read for a request."""

MOST_LEVELS = 64
"""The largest number of folders within each other."""

MOST_PATH_BYTES = 1024
"""The longest path in a folder: the home's own comes before it, and Linux takes 4,096 bytes."""

FolderList = dict[str, str | None]
"""The files of a folder by their paths in it: a reference, or None for a file that only counts."""

_Files = dict[PurePosixPath, Path | None]


class UploadedPaths:
    """Where the files and folders of one request are; what its lists come to is counted over all of them."""

    def __init__(self) -> None:
        self._entries = self._bytes = self._list_bytes = 0

    def path_of(self, text: str) -> str:
        """The path of what a reference names, for `cotrail.services.library.named_files.moved`.

        Raises InputError where it is no reference, as paths of this machine aren't, and where it isn't uploaded or is
        a folder that can't be made; TooLargeError.
        """
        reference = read_reference(text)
        try:
            return str(self._find_folder(reference) if reference.folder else find_file(reference))
        except UnknownNameError as error:  # the request is wrong, and not its address
            raise InputError(str(error)) from error

    def expanded(self, listed: Mapping[str, str | None]) -> _Files:
        """The uploaded files by their paths in a folder, with those of the lists that its list names.

        Raises InputError where two have the same path, or one is below another; TooLargeError, UnknownNameError.
        """
        files: _Files = {}
        folders: set[PurePosixPath] = set()
        waiting = [(PurePosixPath(), listed)]
        while waiting:
            above, names = waiting.pop()
            for name, text in names.items():
                place = _checked(above / check_relative(name))
                reference = None if text is None else read_reference(text)
                self._count(folders, place.parents)
                if reference is not None and reference.folder:
                    self._count(folders, [place])
                    waiting.append((place, self._read_list(reference)))
                elif place in files:
                    raise InputError(f"the folder has two files at {_shown(place)}; give each a path of its own")
                else:
                    files[place] = self._counted(reference)
        if both := folders & files.keys():
            raise InputError(f"{_shown(min(both))} is a file and a folder in the same folder; give one another name")
        return files

    def _find_folder(self, reference: FileReference) -> Path:
        files = self.expanded(self._read_list(reference))
        place = project_folder() / "folders" / reference.digest.removeprefix("sha256:") / (reference.name or "folder")
        if not place.is_dir():
            place.parent.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(dir=place.parent))
            try:
                _write(made, files)
                with suppress(OSError):  # another request has made it meanwhile
                    made.rename(place)
            finally:
                shutil.rmtree(made, ignore_errors=True)
        return place

    def _read_list(self, reference: FileReference) -> FolderList:
        path = find_file(msgspec.structs.replace(reference, folder=False))
        self._list_bytes += path.stat().st_size
        if self._list_bytes > MOST_LIST_BYTES:
            raise TooLargeError(f"the lists of folders are larger than {in_words(MOST_LIST_BYTES)} together")
        try:
            return msgspec.json.decode(path.read_bytes(), type=FolderList)
        except msgspec.MsgspecError as error:
            raise InputError(
                f"{reference} is no list of a folder ({error}): a JSON object of names and files"
            ) from error

    def _counted(self, reference: FileReference | None) -> Path | None:
        self._add_entry()
        if reference is None:
            return None
        path = find_file(reference)
        self._bytes += path.stat().st_size
        if self._bytes > (most := settings().upload_bytes):
            raise TooLargeError(f"the files of the folders have more than {in_words(most)} together")
        return path

    def _count(self, folders: set[PurePosixPath], further: Iterable[PurePosixPath]) -> None:
        for each in further:
            if each in folders:
                return
            folders.add(each)
            self._add_entry()

    def _add_entry(self) -> None:
        self._entries += 1
        if self._entries > MOST_FILES:
            raise TooLargeError(f"the folders have more than {MOST_FILES:,} files and folders together")


def fill_folder(folder: Path, files: Mapping[str, str | None]) -> None:
    """Put files and folders that references name at these paths in a folder; what is there already stays."""
    _write(folder, UploadedPaths().expanded(files))


def _write(folder: Path, files: _Files) -> None:
    Room.of_project(len({*files, *(above for each in files for above in each.parents)}))
    for name, path in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if path is None:
            place.touch()
            continue
        # Links to the content, not to its name: it stays as long as one of them does.
        with suppress(FileExistsError):
            os.link(path, place)


def _checked(place: PurePosixPath) -> PurePosixPath:
    if len(place.parts) > MOST_LEVELS or len(str(place).encode()) > MOST_PATH_BYTES:
        raise InputError(
            f"{_shown(place)} is too long for a path in a folder: {MOST_LEVELS} levels and {MOST_PATH_BYTES:,} bytes "
            "are taken at most"
        )
    return place


def _shown(place: PurePosixPath) -> str:
    return repr(cut(str(place), 100))
