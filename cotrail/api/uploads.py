"""Routes that take the bytes of files, and write them to disk as they come."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

from litestar import Request, Response, head, patch, put
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.spec import OpenAPIMediaType, Operation, RequestBody
from litestar.params import FromPath, FromQuery, HeaderParameter

from cotrail.api.access import scope_guard
from cotrail.services.actor import Scope
from cotrail.services.library.named_files import Upload
from cotrail.services.library.uploaded_files import Cleaning, Room, UploadedFile, uploaded_file
from cotrail.services.library.uploads import FILE_ENTRIES, Arriving, after_piece, arriving_piece, arriving_whole

OFFSET = "Upload-Offset"

AnyRequest = Request[object, object, object]  # type: ignore[type-var]

CLEANING = Cleaning()

Offset = Annotated[int, HeaderParameter(name=OFFSET, ge=0)]


@dataclass
class TakesBytes(Operation):
    """The description of a route whose body is the bytes of a file."""

    def __post_init__(self) -> None:
        self.request_body = RequestBody(content={"application/octet-stream": OpenAPIMediaType()}, required=True)


def _taking_bytes(operation: str, summary: str) -> dict[str, Any]:
    """What these routes have in common."""
    return {
        "status_code": 200,
        "guards": [scope_guard(Scope.SUBMIT)],
        "opt": {"operation": operation, "scope": Scope.SUBMIT},
        "operation_id": operation,
        "operation_class": TakesBytes,
        "summary": summary,
        "tags": ["uploads"],
        "request_max_body_size": None,
    }


@put("/files/{digest:str}", **_taking_bytes("uploads.put", "Upload a file."))
async def put_file(request: AnyRequest, digest: FromPath[str], name: FromQuery[str]) -> UploadedFile:
    """Upload a file by its digest (`sha256:HEX`), under a name whose ending may tell its format.

    The same file again changes nothing.
    """
    room = await asyncio.to_thread(Room.of_project, FILE_ENTRIES)
    with arriving_whole(digest, name, room) as arriving:
        await _receive(request, arriving)
        kept = await asyncio.to_thread(arriving.keep_as, digest, name)
    await asyncio.to_thread(CLEANING.clean)
    return kept


@head(
    "/files/{digest:str}",
    guards=[scope_guard(Scope.READ)],
    opt={"operation": "uploads.head", "scope": Scope.READ},
    operation_id="uploads.head",
    summary="Say whether a file is there.",
    tags=["uploads"],
)
async def head_file(digest: FromPath[str], name: FromQuery[str | None] = None) -> None:
    """Say whether a file is there: 200, or 404."""
    await asyncio.to_thread(uploaded_file, digest, name)


@patch("/uploads/{upload:str}", **_taking_bytes("uploads.piece", "Upload a piece of a file."))
async def patch_upload(request: AnyRequest, upload: FromPath[str], offset: Offset) -> Response[Upload]:
    """Upload a piece of a file that was begun; the last one completes it.

    `Upload-Offset` says at which of its bytes the piece begins. What comes before a connection is lost stays.
    """
    room = await asyncio.to_thread(Room.of_project)
    with arriving_piece(upload, offset, room) as arriving:
        await _receive(request, arriving)
    now = await asyncio.to_thread(after_piece, upload)
    await asyncio.to_thread(CLEANING.clean)
    return Response(now, headers={OFFSET: str(now.offset)})


async def _receive(request: AnyRequest, arriving: Arriving) -> None:
    async for chunk in request.stream():
        await asyncio.to_thread(arriving.write, chunk)


HANDLERS: tuple[HTTPRouteHandler, ...] = (put_file, head_file, patch_upload)
