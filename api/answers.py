"""Answers of operations: records as JSON, which a client may keep as long as they stay the same, and streams."""

import hashlib
from typing import Any
from urllib.parse import urlencode

import msgspec
from litestar import Request, Response

from cotrail.api.streams import streamed
from cotrail.services.operations.operation import Operation

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
