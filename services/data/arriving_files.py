"""Files on their way to the service: whole, or in pieces that go on where a lost connection broke off.

Bytes are written to a file beside the others, which takes its place once they have the digest that was announced.
"""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.common.humanize import size as in_words
from cotrail.configuration.settings import settings
from cotrail.errors import ConflictError, InputError, TooLargeError, UnknownNameError
from cotrail.services.data.uploaded_files import UploadedFile, place_of, project_folder


class Upload(Struct, frozen=True, kw_only=True):
    """A file that comes in pieces; offset: how many of its bytes are there; done: whether it is complete and kept."""

    upload: str
    digest: str
    name: str
    bytes: int
    offset: int = 0
    done: bool = False


class Arriving:
    """A file that is being written; path: where; room: how many bytes may come."""

    def __init__(self, file: BufferedRandom, path: Path, room: int) -> None:
        self._file = file
        self._path = path
        self._room = room

    def write(self, chunk: bytes) -> None:
        """Write the next bytes; raises TooLargeError where they are too many."""
        self._room -= len(chunk)
        if self._room < 0:
            raise TooLargeError(f"the file is larger than {_limit_in_words()}, or than was announced")
        self._file.write(chunk)

    def keep_as(self, digest: str, name: str) -> UploadedFile:
        """Put the file in its place; raises InputError where its bytes have another digest."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.seek(0)
        found = f"sha256:{hashlib.file_digest(self._file, 'sha256').hexdigest()}"
        if found != digest:
            raise InputError(f"the bytes that came have the digest {found}, not {digest}; send the file again")
        place = place_of(digest, name)
        place.parent.mkdir(parents=True, exist_ok=True)
        os.utime(self._file.fileno())
        self._path.replace(place)
        return UploadedFile(digest=digest, name=name, bytes=os.fstat(self._file.fileno()).st_size)


@contextmanager
def arriving_whole(digest: str, name: str) -> Iterator[Arriving]:
    """Receive a file at once; what isn't kept by the end of the block is dropped."""
    place_of(digest, name)  # refuses what is no digest or name before any byte comes
    descriptor, name_until_kept = tempfile.mkstemp(dir=_arriving_folder())
    with open(descriptor, "w+b") as file:  # noqa: PTH123 - a descriptor
        try:
            yield Arriving(file, Path(name_until_kept), settings().upload_bytes)
        finally:
            Path(name_until_kept).unlink(missing_ok=True)


def begin_upload(digest: str, name: str, size: int) -> Upload:
    """Announce a file that will come in pieces, or go on with it; raises TooLargeError."""
    place = place_of(digest, name)
    if size > settings().upload_bytes:
        raise TooLargeError(f"a file of {in_words(size)} is larger than {_limit_in_words()}, the most that is taken")
    # The same file has the same id, so that whoever begins again goes on with it.
    key = hashlib.sha256(f"{digest}/{size}/{name}".encode()).hexdigest()[:32]
    begun = Upload(upload=key, digest=digest, name=name, bytes=size)
    if place.is_file():
        os.utime(place)
        return msgspec.structs.replace(begun, offset=size, done=True)
    _described(key).write_bytes(msgspec.json.encode(begun))
    _pieces(key).touch()
    return find_upload(key)


def find_upload(key: str) -> Upload:
    """A file that comes in pieces, and how far it is; raises UnknownNameError."""
    try:
        begun = msgspec.json.decode(_described(key).read_bytes(), type=Upload)
        return msgspec.structs.replace(begun, offset=_pieces(key).stat().st_size)
    except FileNotFoundError:
        raise UnknownNameError("there is no such upload, or it is complete; begin it again to see") from None


def drop_upload(key: str) -> Upload:
    """Drop what has come of a file; raises UnknownNameError."""
    begun = find_upload(key)
    for path in (_pieces(key), _described(key)):
        path.unlink(missing_ok=True)
    return begun


@contextmanager
def arriving_piece(key: str, offset: int) -> Iterator[Arriving]:
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
        yield Arriving(file, _pieces(key), begun.bytes - offset)


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
            Arriving(file, _pieces(key), 0).keep_as(begun.digest, begun.name)
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
