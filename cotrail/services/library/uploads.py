"""Files on their way to the service: whole, or in pieces that go on where a lost connection broke off.

Bytes are written to a file next to the others, which takes its place once they have the digest that was announced.
"""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from cotrail.common.humanize import size as in_words
from cotrail.configuration.settings import settings
from cotrail.errors import ConflictError, InputError, TooLargeError, UnknownNameError
from cotrail.services.actor import Scope
from cotrail.services.library.named_files import Upload
from cotrail.services.library.uploaded_files import Room, UploadedFile, place_of, project_folder
from cotrail.services.operations.operation import operation

FILE_ENTRIES = 2
"""A file is in a folder of its own."""


class Arriving:
    """A file that is being written; path: where; most: how many bytes may come; room: where they are counted."""

    def __init__(self, file: BufferedRandom, path: Path, most: int, room: Room) -> None:
        self._file = file
        self._path = path
        self._most = most
        self._room = room

    def write(self, chunk: bytes) -> None:
        """Write the next bytes; raises TooLargeError where they are too many, QuotaExceededError for the project."""
        self._most -= len(chunk)
        if self._most < 0:
            raise TooLargeError(f"the file is larger than {_limit_in_words()}, or than was announced")
        self._room.take(len(chunk))
        self._file.write(chunk)

    def keep_as(self, digest: str, name: str) -> UploadedFile:
        """Put the file in its place; raises InputError where its bytes have another digest."""
        return _keep(self._file, self._path, digest, name)


def _keep(file: BufferedRandom, path: Path, digest: str, name: str) -> UploadedFile:
    file.flush()
    os.fsync(file.fileno())
    file.seek(0)
    found = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    if found != digest:
        raise InputError(f"the bytes that came have the digest {found}, not {digest}; send the file again")
    place = place_of(digest, name)
    place.parent.mkdir(parents=True, exist_ok=True)
    os.utime(file.fileno())
    path.replace(place)
    return UploadedFile(digest=digest, name=name, bytes=os.fstat(file.fileno()).st_size)


@contextmanager
def arriving_whole(digest: str, name: str, room: Room) -> Iterator[Arriving]:
    """Receive a file at once; what isn't kept by the end of the block is dropped."""
    place_of(digest, name)  # refuses what is no digest or name before any byte comes
    descriptor, name_until_kept = tempfile.mkstemp(dir=_arriving_folder())
    with open(descriptor, "w+b") as file:  # noqa: PTH123 - a descriptor
        try:
            yield Arriving(file, Path(name_until_kept), settings().upload_bytes, room)
        finally:
            Path(name_until_kept).unlink(missing_ok=True)


Size = Annotated[int, Meta(ge=0)]


@operation("uploads.begin", "POST", "/uploads", Scope.SUBMIT, status=201)
def begin_upload(digest: str, name: str, bytes: Size) -> Upload:  # noqa: A002 - as the record has it
    """Begin to upload a file in pieces, or go on with it: the answer says where.

    bytes: the size of the whole file. Each piece is a PATCH; with the last one the file is complete.
    """
    # Raises TooLargeError, QuotaExceededError.
    place = place_of(digest, name)
    if bytes > settings().upload_bytes:
        raise TooLargeError(f"a file of {in_words(bytes)} is larger than {_limit_in_words()}, the most that is taken")
    # The same file has the same id, so that an upload that begins again continues it.
    key = hashlib.sha256(f"{digest}/{bytes}/{name}".encode()).hexdigest()[:32]
    begun = Upload(upload=key, digest=digest, name=name, bytes=bytes)
    if place.is_file():
        os.utime(place)
        return msgspec.structs.replace(begun, offset=bytes, done=True)
    pieces = _pieces(key)
    is_begun = pieces.exists()
    Room.of_project(0 if is_begun else FILE_ENTRIES).check(bytes - (pieces.stat().st_size if is_begun else 0))
    _described(key).write_bytes(msgspec.json.encode(begun))
    pieces.touch()
    return find_upload(key)


@operation("uploads.show", "GET", "/uploads/{upload}", Scope.READ)
def find_upload(upload: str) -> Upload:
    """Say how much of a file has come."""
    try:
        begun = msgspec.json.decode(_described(upload).read_bytes(), type=Upload)
        return msgspec.structs.replace(begun, offset=_pieces(upload).stat().st_size)
    except FileNotFoundError:
        raise UnknownNameError("there is no such upload, or it is complete; begin it again to see") from None


@operation("uploads.drop", "DELETE", "/uploads/{upload}", Scope.SUBMIT)
def drop_upload(upload: str) -> Upload:
    """Drop what has come of a file."""
    begun = find_upload(upload)
    for path in (_pieces(upload), _described(upload)):
        path.unlink(missing_ok=True)
    return begun


@contextmanager
def arriving_piece(key: str, offset: int, room: Room) -> Iterator[Arriving]:
    """Receive the next piece of a file; what came of it stays, also where the connection is lost.

    Raises ConflictError where the piece doesn't begin where the last one ended.
    """
    begun = find_upload(key)
    with _pieces(key).open("r+b") as file:
        _take_turn(file)
        there = os.fstat(file.fileno()).st_size
        if there != offset or not _pieces(key).exists():
            raise ConflictError(f"the piece begins at {offset:,}, and {there:,} bytes are there; go on from these")
        file.seek(offset)
        yield Arriving(file, _pieces(key), begun.bytes - offset, room)


def after_piece(key: str) -> Upload:
    """How far a file is once a piece has come: where that was the last one, it is put in its place.

    Raises InputError where its digest isn't the one announced; it then has to be sent again from its beginning.
    """
    begun = find_upload(key)
    if begun.offset < begun.bytes:
        return begun
    with _pieces(key).open("r+b") as file:
        _take_turn(file)
        try:
            _keep(file, _pieces(key), begun.digest, begun.name)
        except InputError:
            _pieces(key).unlink(missing_ok=True)
            raise
        finally:
            _described(key).unlink(missing_ok=True)
    return msgspec.structs.replace(begun, done=True)


def _take_turn(file: BufferedRandom) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConflictError("another request is sending a piece of this file; wait for it to end") from None


def _arriving_folder() -> Path:
    folder = project_folder() / "arriving"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _pieces(key: str) -> Path:
    return _arriving_folder() / f"{_checked(key)}.pieces"


def _described(key: str) -> Path:
    return _arriving_folder() / f"{_checked(key)}.json"


def _checked(key: str) -> str:
    if not key.isascii() or not key.isalnum():
        raise UnknownNameError("there is no such upload")
    return key


def _limit_in_words() -> str:
    return in_words(settings().upload_bytes)
