"""Files of requests, sent to the server before them: once, whole or in pieces, and folders file by file."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from cotrail.client.calls import PREFIX, Call
from cotrail.data.corpora.document_names import files_in, holds_records, is_document
from cotrail.errors import ConflictError, InputError, UnavailableError, UnknownNameError
from cotrail.services.library.file_references import FileReference, Upload, check_file_name

R = TypeVar("R")

PIECE_BYTES = 8 * 2**20
"""The most bytes of one request; larger files are sent in pieces, which go on where a lost connection broke off."""

MOST_TRIES = 8
"""How often a piece is tried, with pauses of half a minute in the end."""

BYTES = "application/octet-stream"

Send = Callable[[Call], bytes]
"""Sends a request and returns the body of its answer; raises the error that the server tells of."""


class Uploading:
    """Sends files to a server; wait: pauses between two tries of a piece."""

    def __init__(self, send: Send, wait: Any = wait_exponential(multiplier=0.5, max=30)) -> None:  # noqa: B008
        self._send = send
        self._wait = wait

    def upload(self, path: str) -> str:
        """Send a file or a folder, as far as the server doesn't have it; returns the reference that stands for it."""
        place = Path(path)
        try:
            return str(self._folder(place) if place.is_dir() else self._file(place))
        except OSError as error:
            raise InputError(f"{path} can't be read ({error.strerror}); check the path") from error

    def _folder(self, folder: Path) -> FileReference:
        """Send what is read of a folder and those below it, and a list of all its files."""
        listed = {
            str(each.relative_to(folder)): str(self._file(each)) if is_document(each) or holds_records(each) else None
            for each in files_in(folder)
        }
        content = msgspec.json.encode(dict(sorted(listed.items())))
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        reference = FileReference(digest=digest, name=check_file_name(folder.absolute().name or "folder"))
        if not self._is_there(reference):
            self._put(reference, content)
        return msgspec.structs.replace(reference, folder=True)

    def _file(self, path: Path) -> FileReference:
        with path.open("rb") as file:
            digest = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
            reference = FileReference(digest=digest, name=check_file_name(path.name))
            if self._is_there(reference):
                return reference
            size = file.tell()
            if size <= PIECE_BYTES:
                file.seek(0)
                self._put(reference, file.read())
            else:
                self._send_pieces(reference, file, size)
        return reference

    def _is_there(self, reference: FileReference) -> bool:
        try:
            self._send(Call(method="GET", path=f"{PREFIX}/files/{reference.digest}", query=_named(reference)))
        except UnknownNameError:
            return False
        return True

    def _put(self, reference: FileReference, content: bytes) -> None:
        place = f"{PREFIX}/files/{reference.digest}"
        call = Call(method="PUT", path=place, query=_named(reference), body=content, media_type=BYTES)
        self._again(lambda: self._send(call))

    def _send_pieces(self, reference: FileReference, file: BinaryIO, size: int) -> None:
        while not self._again(lambda: self._next_piece(reference, file, size)).done:
            pass

    def _next_piece(self, reference: FileReference, file: BinaryIO, size: int) -> Upload:
        """Ask how far the server is, since an answer may have been lost, and send what follows."""
        upload = self._begin(reference, size)
        if upload.done:
            return upload
        file.seek(upload.offset)
        call = Call(
            method="PATCH",
            path=f"{PREFIX}/uploads/{upload.upload}",
            headers=(("Upload-Offset", str(upload.offset)),),
            body=file.read(PIECE_BYTES),
            media_type=BYTES,
        )
        return msgspec.json.decode(self._send(call), type=Upload)

    def _begin(self, reference: FileReference, size: int) -> Upload:
        announced = {"digest": reference.digest, "name": reference.name, "bytes": size}
        call = Call(method="POST", path=f"{PREFIX}/uploads", body=msgspec.json.encode(announced))
        return msgspec.json.decode(self._send(call), type=Upload)

    def _again(self, attempt: Callable[[], R]) -> R:
        """Try again where the connection is lost."""
        retrying = Retrying(
            retry=retry_if_exception_type((UnavailableError, ConflictError)),
            wait=self._wait,
            stop=stop_after_attempt(MOST_TRIES),
            reraise=True,
        )
        return retrying(attempt)


def _named(reference: FileReference) -> tuple[tuple[str, str], ...]:
    return (("name", reference.name or ""),)
