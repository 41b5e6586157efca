"""Uploads: which files the service has, and files that come in pieces; `cotrail.api.uploads` takes their bytes."""

from typing import Annotated

from msgspec import Meta

from cotrail.services.access.actor import Scope
from cotrail.services.data import arriving_files
from cotrail.services.data.arriving_files import Upload
from cotrail.services.data.uploaded_files import UploadedFile, uploaded_file
from cotrail.services.operations.operation import operation

Size = Annotated[int, Meta(ge=0)]


@operation("GET", "/files/{digest}", Scope.READ)
def file(digest: str, name: str | None = None) -> UploadedFile:
    """Say whether a file is there, by its digest (`sha256:HEX`), and by its name where one is given."""
    return uploaded_file(digest, name)


@operation("POST", "/uploads", Scope.SUBMIT, status=201)
def begin(digest: str, name: str, bytes: Size) -> Upload:  # noqa: A002 - as the record has it
    """Begin to upload a file in pieces, or go on with it: the answer says where.

    bytes: the size of the whole file. Each piece is a PATCH; with the last one the file is complete.
    """
    return arriving_files.begin_upload(digest, name, bytes)


@operation("GET", "/uploads/{upload}", Scope.READ)
def show(upload: str) -> Upload:
    """Say how much of a file has come."""
    return arriving_files.find_upload(upload)


@operation("DELETE", "/uploads/{upload}", Scope.SUBMIT)
def drop(upload: str) -> Upload:
    """Drop what has come of a file."""
    return arriving_files.drop_upload(upload)
