"""Answers of operations: records as JSON, which a client may keep as long as they stay the same, and streams."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Generator
from threading import Lock
from typing import Any
from urllib.parse import urlencode

import msgspec
from litestar import Request, Response
from litestar.response import Stream

from cotrail.api.event_streams import while_allowed
from cotrail.services.actor import actor
from cotrail.services.operations.operation import Operation

# Answers that are sent piece by piece while they are made.

PIECE_BYTES = 2**16
"""Pieces are gathered until they have so many bytes: each is made in a thread, and sent on its own."""

Pieces = Generator[bytes, None, None]


def streamed(pieces: Pieces, media_type: str) -> Stream:
    """The answer of these pieces; what the first one raises is raised at once, so that the answer can say it.

    Where the token of the one who asks isn't valid any more, the answer breaks off.
    """
    sent = _sent(next(pieces, b""), _Gathering(pieces))
    return Stream(while_allowed(actor(), sent), media_type=media_type)


class _Gathering:
    """Gathers pieces in threads, one at a time."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._turn = Lock()

    def some(self) -> bytes:
        """The next pieces; empty where there are none."""
        gathered = bytearray()
        with self._turn:
            for piece in self._pieces:
                gathered += piece
                if len(gathered) >= PIECE_BYTES:
                    break
        return bytes(gathered)

    def close(self) -> None:
        """End the making of pieces, which gives back what it holds, such as a connection."""
        with self._turn:
            self._pieces.close()


async def _sent(first: bytes, gathering: _Gathering) -> AsyncGenerator[bytes, None]:
    try:
        yield first
        while piece := await asyncio.to_thread(gathering.some):
            yield piece
    finally:
        # Not awaited: where the client has gone, nothing may be awaited any more, and a piece may still be made.
        asyncio.get_running_loop().run_in_executor(None, gathering.close)


AnyRequest = Request[Any, Any, Any]


def answer_with(operation: Operation[Any, Any], request: AnyRequest, result: Any) -> Response[Any]:
    """The answer to a request whose operation has come to this result."""
    if operation.answers == "stream":
        return streamed(result, operation.media_type)
    content = msgspec.json.encode(result, enc_hook=str)
    headers = _links(request, result)
    if request.method != "GET":
        return Response(content, status_code=operation.status, media_type="application/json", headers=headers)
    tag = _tag(content)
    if _knows(request.headers.get("if-none-match", ""), tag):
        return Response(b"", status_code=304, headers={"ETag": tag})
    return Response(content, media_type="application/json", headers={**headers, "ETag": tag})


def _links(request: AnyRequest, result: Any) -> dict[str, str]:
    """The address of the next page of a list, whose record says behind which entry it begins."""
    after = getattr(result, "next_after", None)
    if after is None:
        return {}
    kept = [(name, value) for name, value in request.query_params.multi_items() if name != "after"]
    query = urlencode([*kept, ("after", after)])
    return {"Link": f'<{request.scope["path"]}?{query}>; rel="next"'}


def _tag(content: bytes) -> str:
    """The weak ETag of what an answer says."""
    return f'W/"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'


def _knows(known: str, tag: str) -> bool:
    """Whether the client has this answer already (`If-None-Match`), by weak comparison."""
    return any(each.strip().removeprefix("W/") == tag.removeprefix("W/") for each in known.split(","))
