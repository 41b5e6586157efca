"""What stands between Elasticsearch's official client and a server, so that it speaks with every server of its kind.

As it comes, the client sends a media type that names its vendor and its own version, which servers of former versions
and of others refuse, and refuses answers that don't name the product. Plain JSON is taken by all of them.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import msgspec
from elastic_transport import (
    NodeConfig,
    Serializer,
    Transport,
    TransportApiResponse,
    TransportError,
    Urllib3HttpNode,
)
from urllib3 import BaseHTTPResponse, HTTPHeaderDict

from cotrail.common.input_limits import MIB, shown_size

MAX_ANSWER_BYTES = 256 * MIB
"""What an answer may hold: the hits of many searches at once, thousands of times what is usual."""

VENDORS_TYPE = re.compile(r"application/vnd\.elasticsearch\+([a-z-]+)(; *compatible-with=\d+)?")


class TooLargeError(TransportError):
    """An answer is larger than `MAX_ANSWER_BYTES`."""


class PlainTransport(Transport):
    """Sends plain media types; says of every answer that it comes from the client's product."""

    def perform_request(self, method: str, target: str, **options: Any) -> TransportApiResponse:
        """See `Transport.perform_request`, which takes the same."""
        sent = {name: VENDORS_TYPE.sub(r"application/\1", value) for name, value in options.get("headers", {}).items()}
        answer = super().perform_request(method, target, **options | {"headers": sent})
        answer.meta.headers["x-elastic-product"] = "Elasticsearch"
        # The client would make Python warnings of these; whoever runs cotrail can't change its requests.
        answer.meta.headers.pop("warning", None)
        return answer


class _Answer(NamedTuple):
    """As much of an answer as a node needs."""

    status: int
    headers: HTTPHeaderDict
    data: bytes


class BoundedNode(Urllib3HttpNode):
    """Reads no more of an answer than shows that it is too large; TooLargeError then."""

    def __init__(self, config: NodeConfig) -> None:
        super().__init__(config)
        self.pool.urlopen = _bounded(self.pool.urlopen)  # type: ignore[method-assign, assignment]

    def perform_request(self, *arguments: Any, **options: Any) -> Any:
        """See `BaseNode.perform_request`, which takes the same."""
        answer = super().perform_request(*arguments, **options)
        if len(answer.body) > MAX_ANSWER_BYTES:
            raise TooLargeError(f"it answers with more than {shown_size(MAX_ANSWER_BYTES)}")
        return answer


def _bounded(urlopen: Callable[..., BaseHTTPResponse]) -> Callable[..., _Answer]:
    def answered(*arguments: Any, **options: Any) -> _Answer:
        response = urlopen(*arguments, **options, preload_content=False)
        data = response.read(MAX_ANSWER_BYTES + 1)
        if len(data) > MAX_ANSWER_BYTES:
            response.close()
        response.release_conn()
        return _Answer(response.status, response.headers, data)

    return answered


class Json(Serializer):
    """JSON by msgspec; what isn't JSON stays text, since errors of proxies are often pages."""

    mimetype: ClassVar[str] = "application/json"

    def dumps(self, data: Any) -> bytes:
        """The value as JSON; bytes are JSON already."""
        return data if isinstance(data, bytes) else msgspec.json.encode(data)

    def loads(self, data: bytes) -> Any:
        """The value, or the text."""
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return data.decode(errors="replace")


class JsonLines(Json):
    """A JSON value a line."""

    mimetype: ClassVar[str] = "application/x-ndjson"

    def dumps(self, data: Any) -> bytes:
        """The values as lines, the last one ended too, as servers want it."""
        return b"".join(super(JsonLines, self).dumps(value) + b"\n" for value in data)


SERIALIZERS: Mapping[str, Serializer] = {
    Json.mimetype: Json(),
    JsonLines.mimetype: JsonLines(),
    "application/*": Json(),
    "text/*": Json(),
}
"""By media type, as the client takes them."""
