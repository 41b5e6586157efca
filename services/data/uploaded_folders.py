"""Folders that clients upload: a list of their files, which are uploaded by themselves, made a folder again.

The list is a JSON object of paths in the folder and references. A file that only counts, because nothing reads it, has
none, and is empty here.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from cotrail.errors import InputError, UnknownNameError
from cotrail.services.data.file_references import FileReference, check_relative, read_reference
from cotrail.services.data.uploaded_files import find_file, project_folder

MOST_FILES = 100_000
"""The largest number of files of a folder."""

MOST_LIST_BYTES = 64 * 2**20

FolderList = dict[str, str | None]
"""The files of a folder by their paths in it: a reference, or None for a file that only counts."""


def path_of(text: str) -> str:
    """The path of what a reference names, for `cotrail.services.operations.files.moved`.

    Raises InputError where it is no reference, as paths of this machine aren't, and where it isn't uploaded.
    """
    reference = read_reference(text)
    try:
        return str(_find_folder(reference) if reference.folder else find_file(reference))
    except UnknownNameError as error:  # the request is wrong, and not its address
        raise InputError(str(error)) from error


def fill_folder(folder: Path, files: Mapping[str, str | None]) -> None:
    """Put files and folders that references name at these paths in a folder."""
    for name, text in files.items():
        _put(folder / check_relative(name), text)


def _put(place: Path, text: str | None) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if text is None:
        place.touch()
        return
    reference = read_reference(text)
    if reference.folder:
        fill_folder(place, _read_list(reference))
        return
    # Links to the content, not to its name: it stays as long as one of them does.
    with suppress(FileExistsError):
        os.link(find_file(reference), place)


def _find_folder(reference: FileReference) -> Path:
    files = _read_list(reference)
    place = project_folder() / "folders" / reference.digest.removeprefix("sha256:") / (reference.name or "folder")
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=place.parent))
        try:
            fill_folder(made, files)
            with suppress(OSError):  # another request has made it meanwhile
                made.rename(place)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return place


def _read_list(reference: FileReference) -> FolderList:
    path = find_file(msgspec.structs.replace(reference, folder=False))
    try:
        if path.stat().st_size > MOST_LIST_BYTES:
            raise InputError(f"the list of the folder {reference} is too large")
        files = msgspec.json.decode(path.read_bytes(), type=FolderList)
    except msgspec.MsgspecError as error:
        raise InputError(f"{reference} is no list of a folder ({error}): a JSON object of names and files") from error
    if len(files) > MOST_FILES:
        raise InputError(f"the folder {reference} has {len(files):,} files; {MOST_FILES:,} are taken at most")
    return files
