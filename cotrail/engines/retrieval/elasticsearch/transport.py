"""Transport beneath Elasticsearch's official client that works with every server of its kind.

By default the client sends a media type with its vendor's name and its own version, which older servers and other
products reject, and it rejects responses that don't name the product. All servers accept plain JSON.
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

from cotrail.common.text_files import MIB, shown_size

MAX_ANSWER_BYTES = 256 * MIB
"""The most bytes of a response: the hits of many searches at once, thousands of times the usual size."""

VENDORS_TYPE = re.compile(r"application/vnd\.elasticsearch\+([a-z-]+)(; *compatible-with=\d+)?")


class TooLargeError(TransportError):
    """A response is larger than `MAX_ANSWER_BYTES`."""


class PlainTransport(Transport):
    """Sends plain media types, and marks every response as coming from the client's product."""

    def perform_request(self, method: str, target: str, **options: Any) -> TransportApiResponse:
        """See `Transport.perform_request`, which takes the same."""
        sent = {name: VENDORS_TYPE.sub(r"application/\1", value) for name, value in options.get("headers", {}).items()}
        answer = super().perform_request(method, target, **options | {"headers": sent})
        answer.meta.headers["x-elastic-product"] = "Elasticsearch"
        # The client would turn these into Python warnings, but users of cotrail can't change its requests.
        answer.meta.headers.pop("warning", None)
        return answer


class _Answer(NamedTuple):
    """The part of a response that a node needs."""

    status: int
    headers: HTTPHeaderDict
    data: bytes


class BoundedNode(Urllib3HttpNode):
    """Stops reading a response once it is too large, and raises TooLargeError."""

    def __init__(self, config: NodeConfig) -> None:
        super().__init__(config)
        # The node has no option to stream; urllib3 would read the whole response into memory.
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
        # One byte more than allowed tells a response that is too large from one that just fits.
        data = response.read(MAX_ANSWER_BYTES + 1)
        # Closed first: a released connection with a rest of this response would begin the next one with it.
        if len(data) > MAX_ANSWER_BYTES:
            response.close()
        response.release_conn()
        return _Answer(response.status, response.headers, data)

    return answered


class Json(Serializer):
    """JSON by msgspec; anything else stays text, because errors of proxies are often HTML pages."""

    mimetype: ClassVar[str] = "application/json"

    def dumps(self, data: Any) -> bytes:
        """The value as JSON; bytes are JSON already."""
        return data if isinstance(data, bytes) else msgspec.json.encode(data)

    def loads(self, data: bytes) -> Any:
        """The value, or the text where it isn't JSON."""
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return data.decode(errors="replace")


class JsonLines(Json):
    """One JSON value a line."""

    mimetype: ClassVar[str] = "application/x-ndjson"

    def dumps(self, data: Any) -> bytes:
        """The values as lines; servers require the last one to end in a line break too."""
        return b"".join(super(JsonLines, self).dumps(value) + b"\n" for value in data)


SERIALIZERS: Mapping[str, Serializer] = {
    Json.mimetype: Json(),
    JsonLines.mimetype: JsonLines(),
    "application/*": Json(),
    "text/*": Json(),
}
"""Serializers by media type, in the form that the client takes."""
