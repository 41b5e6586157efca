"""Elasticsearch's official client with exponential backoff while the server is away or busy, and with our own errors.

The official client's own retries follow one another at once where a server responds that it is busy, so they are off.
"""

import logging
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec
from elastic_transport import NodeConfig, Serializer, Transport, TransportApiResponse, Urllib3HttpNode
from elastic_transport.client_utils import url_to_node_config
from elasticsearch import (
    ApiError,
    ConnectionError,  # noqa: A004 - the library's name for it
    ConnectionTimeout,
    Elasticsearch,
    SerializationError,
    SSLError,
    TransportError,
)
from msgspec import Struct
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential
from urllib3 import BaseHTTPResponse, HTTPHeaderDict

from cotrail.common.text_files import MIB, shown_size
from cotrail.engines.retrieval.search_server import SearchServer
from cotrail.errors import CorpusError, InputError, UnavailableError

# Transport beneath Elasticsearch's official client that works with every server of its kind.
#
# By default the client sends a media type with its vendor's name and its own version, which older servers and other
# products reject, and it rejects responses that don't name the product. All servers accept plain JSON.

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


# The client, with exponential backoff and our own errors.

Done = TypeVar("Done")
Reply = TypeVar("Reply")

REQUEST_SECONDS = 30.0
"""Timeout of a request."""

ATTEMPTS = 5
"""Attempts before the server counts as away, over some seconds."""

LONGEST_PAUSE = 10.0
"""The longest pause between two attempts, in seconds."""

LONGEST_FAULT = 500
"""Characters of a server's error message that are passed on."""

CONNECTIONS = 32
"""The most connections to a node; further threads wait."""

BUSY_STATUSES = (429, 502, 503, 504)
"""Statuses of a server or proxy that may recover soon."""

MANAGERS = {"master", "cluster_manager"}
"""Roles of nodes, in Elasticsearch and in OpenSearch, that only manage the cluster and shouldn't be searched."""


# A failed request is raised, and reported where it is handled. The library would also report each at each request, and
# once more at as many later requests: its pool keeps a node for every failure that it had.
logging.getLogger("elastic_transport.node_pool").setLevel(logging.ERROR)
logging.getLogger("elastic_transport.transport").setLevel(logging.WARNING)


class BusyError(UnavailableError):
    """The server is away or busy; another attempt may succeed."""


class FaultyError(UnavailableError):
    """The server responds with an error of its own, or not as a search server does."""


class MissingError(CorpusError):
    """The index or alias doesn't exist."""


class RefusedError(CorpusError):
    """The server understands the request and refuses it."""


class Fault(Struct, frozen=True):
    """An error as a server describes it."""

    type: str = "error"
    reason: str | None = None

    def __str__(self) -> str:
        """Type and reason in one line."""
        return f"{self.type}: {self.reason}" if self.reason else self.type


class _Faulty(Struct, frozen=True):
    error: Fault | str = ""


class ElasticsearchClient:
    """Talks to one server, of one or several nodes; safe for many threads.

    Raises UnavailableError where the server doesn't respond, stays busy or isn't a search server, and InputError where
    it rejects the user or the settings are invalid.
    """

    def __init__(self, server: SearchServer) -> None:
        self._server = server
        self._secrets = server.secrets
        try:
            self._api = _official(server)
        except (ValueError, OSError):
            raise InputError(
                f"{server} can't be reached as COTRAIL_SEARCH_URL, COTRAIL_SEARCH_CLOUD_ID and COTRAIL_SEARCH_CA say; "
                "the URL must be like https://user:password@host:9200, and the last one a file of certificates"
            ) from None

    def ask(
        self,
        call: Callable[[Elasticsearch], Any],
        reply: type[Reply] = dict[str, Any],  # type: ignore[assignment]
        *,
        seconds: float | None = None,
        attempts: int = ATTEMPTS,
    ) -> Reply:
        """Calls a method of the official client, with retries, and decodes its response.

        call: calls the method. Apart from the class's errors, raises MissingError, RefusedError, and CorpusError for a
            request that is too large.
        """
        answer = self.insist(self._once, call, seconds, attempts=attempts)
        try:
            return msgspec.convert(answer.body, reply)
        except msgspec.ValidationError as error:
            raise self._strange(error) from error

    def insist(self, work: Callable[..., Done], *arguments: object, attempts: int = ATTEMPTS) -> Done:
        """Does the work, with retries and exponential backoff while it raises BusyError."""
        retrying = Retrying(
            retry=retry_if_exception_type(BusyError),
            wait=wait_random_exponential(multiplier=0.25, max=LONGEST_PAUSE),
            stop=stop_after_attempt(attempts),
            reraise=True,
        )
        return retrying(work, *arguments)

    def _once(self, call: Callable[[Elasticsearch], Done], seconds: float | None = None) -> Done:
        """Calls the official client once and translates its errors into ours."""
        try:
            return call(self._api if seconds is None else self._api.options(request_timeout=seconds))
        # `from None`: the library's errors may quote secrets, which a traceback would show.
        except ApiError as error:
            raise self._rejected(error.status_code, error.body) from None
        except TransportError as error:
            raise self._unreached(error) from None

    def said(self, fault: object) -> str:
        """A server's error message, without the secrets that it may repeat."""
        return self._secrets.hidden(str(fault))[:LONGEST_FAULT]

    def _strange(self, error: Exception) -> FaultyError:
        return FaultyError(
            f"{self._server} answers as no Elasticsearch or OpenSearch does ({self.said(error)}); "
            "check COTRAIL_SEARCH_URL"
        )

    def _unreached(self, error: TransportError) -> UnavailableError:
        """The error for a server that couldn't be reached; only what may pass soon is a BusyError."""
        if isinstance(error, SerializationError):
            return self._strange(error)
        if isinstance(error, TooLargeError):
            return FaultyError(f"{self._server}: {error.message}; ask for fewer paragraphs, or index shorter ones")
        reason = f"{self._server} doesn't answer ({self.said(error)}); check that it runs, COTRAIL_SEARCH_URL"
        if isinstance(error, SSLError):
            return UnavailableError(f"{reason} and, for authorities of your own, COTRAIL_SEARCH_CA")
        # Other errors of the transport, such as a wrong address or a bad certificate, don't pass by waiting.
        passing = isinstance(error, ConnectionError | ConnectionTimeout)
        return (BusyError if passing else UnavailableError)(f"{reason} and the network between")

    def _rejected(self, status: int, body: object) -> Exception:
        reason = f"{self._server} answers {status} ({self.said(_fault(body))})"
        if status in BUSY_STATUSES:
            return BusyError(f"{reason}; wait until it has less to do, or give it more room")
        if status >= 500:
            return FaultyError(f"{reason}; its log says more")
        if status in {401, 403}:
            return InputError(
                f"{reason}; check the user in COTRAIL_SEARCH_URL or COTRAIL_SEARCH_API_KEY, "
                f"and what it may do with indexes named {self._server.prefix}*"
            )
        if status == 404:
            return MissingError(f"{reason}; index the corpus with `cotrail index`")
        if status == 413:
            return CorpusError(f"{reason}; raise its http.max_content_length, or that of the proxy before it")
        return RefusedError(f"{reason}; check that the server is Elasticsearch from 7.10 or OpenSearch")


def _official(server: SearchServer) -> Elasticsearch:
    ca = str(server.ca) if server.ca is not None else None
    if ca is not None:
        ssl.create_default_context(cafile=ca)  # an unusable file would otherwise be noticed only at the first request
    options: dict[str, Any] = {"cloud_id": server.cloud_id} if server.cloud_id else {}
    if server.cloud_id and ca:
        options["ca_certs"] = ca
    if server.sniff:
        # A shorter timeout would make a sniff fail, and with it each request, where the server is only slow.
        options |= {"sniff_before_requests": True, "sniff_on_node_failure": True, "sniff_timeout": REQUEST_SECONDS}
        options["sniffed_node_callback"] = _no_manager
    return Elasticsearch(
        [_node(url, ca) for url in server.urls] or None,
        api_key=server.api_key,
        transport_class=PlainTransport,
        node_class=BoundedNode,
        serializers=SERIALIZERS,
        connections_per_node=CONNECTIONS,
        request_timeout=REQUEST_SECONDS,
        max_retries=0,
        **options,
    )


def _node(url: str, ca: str | None) -> NodeConfig:
    node = url_to_node_config(url, use_default_ports_for_scheme=True)
    return replace(node, ca_certs=ca if node.scheme == "https" else None)


def _no_manager(node: dict[str, Any], config: NodeConfig) -> NodeConfig | None:
    roles = set(node.get("roles", ()))
    return None if roles and roles <= MANAGERS else config


def _fault(body: object) -> str:
    """The server's error message, in one line."""
    try:
        return str(msgspec.convert(body, _Faulty).error)
    except msgspec.ValidationError:
        return str(body or "").strip() or "and nothing more"
