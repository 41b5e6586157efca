"""Requests to a search server, made again while it is away or busy.

Bodies are plain JSON, which Elasticsearch and OpenSearch both take; Elasticsearch's own client sends a media type of
its vendor's and refuses other products.
"""

import ssl
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import msgspec
from elastic_transport import (
    ConnectionError,  # noqa: A004 - the library's name for it
    ConnectionTimeout,
    NodeConfig,
    SerializerCollection,
    TlsError,
    Transport,
    TransportError,
    Urllib3HttpNode,
)
from elastic_transport.client_utils import url_to_node_config
from msgspec import Struct
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential
from urllib3 import BaseHTTPResponse, HTTPHeaderDict

from cotrail.bounds import MIB, shown
from cotrail.errors import CorpusError, InputError, UnavailableError
from cotrail.retrieval.stores import SearchServer

Reply = TypeVar("Reply")

REQUEST_SECONDS = 30.0
"""How long an answer may take."""

ATTEMPTS = 5
"""How often a request is made before the server counts as away: some seconds."""

LONGEST_PAUSE = 10.0
"""Seconds between two attempts at most."""

LONGEST_FAULT = 500
"""How much of what a server says is wrong is passed on, in characters."""

CONNECTIONS = 32
"""How many threads may ask a node at once before they wait for each other."""

MAX_ANSWER_BYTES = 256 * MIB
"""What an answer may hold: the hits of many searches at once, thousands of times what is usual."""

BUSY = (429, 502, 503, 504)
"""What a server or a proxy answers that may do better soon."""


class BusyError(UnavailableError):
    """The server is away or busy; another attempt may do."""


class FaultyError(UnavailableError):
    """The server answers, but with an error of its own or as no search server does."""


class MissingError(CorpusError):
    """The index or alias isn't there."""


class RefusedError(CorpusError):
    """The server understands the request and won't do it."""


class Fault(Struct, frozen=True):
    """What a server says is wrong."""

    type: str = "error"
    reason: str | None = None

    def __str__(self) -> str:
        """Both in a line."""
        return f"{self.type}: {self.reason}" if self.reason else self.type


class _Faulty(Struct, frozen=True):
    error: Fault | str = ""


class _Raw(SerializerCollection):
    """Leaves bodies as they are: errors of proxies are often no JSON."""

    def dumps(self, data: Any, mimetype: str | None = None) -> bytes:  # noqa: ARG002
        return data if isinstance(data, bytes) else msgspec.json.encode(data)

    def loads(self, data: bytes, mimetype: str | None = None) -> bytes:  # noqa: ARG002
        return data


class _Answer(NamedTuple):
    """As much of an answer as a node needs."""

    status: int
    headers: HTTPHeaderDict
    data: bytes


class _BoundedNode(Urllib3HttpNode):
    """Reads no more of an answer than shows that it is too large."""

    def __init__(self, config: NodeConfig) -> None:
        super().__init__(config)
        self.pool.urlopen = _bounded(self.pool.urlopen)  # type: ignore[method-assign, assignment]


def _bounded(urlopen: Callable[..., BaseHTTPResponse]) -> Callable[..., _Answer]:
    def answered(*arguments: Any, **options: Any) -> _Answer:
        response = urlopen(*arguments, **options, preload_content=False)
        data = response.read(MAX_ANSWER_BYTES + 1)
        if len(data) > MAX_ANSWER_BYTES:
            response.close()
        response.release_conn()
        return _Answer(response.status, response.headers, data)

    return answered


class Client:
    """Speaks with one server, be it of several nodes; safe for many threads.

    UnavailableError: it doesn't answer, is busy for long or isn't such a server; InputError: it doesn't accept the
    user, or the settings can't be used.
    """

    def __init__(self, server: SearchServer) -> None:
        self._server = server
        self._secrets = server.secrets
        try:
            nodes = [_node(server, url) for url in server.urls]
            self._transport = Transport(nodes, node_class=_BoundedNode, max_retries=0)
        except (ValueError, OSError):
            raise InputError(
                f"{server} can't be reached as COTRAIL_SEARCH_URL and COTRAIL_SEARCH_CA say; the URL must be like "
                "https://user:password@host:9200, and the other a file of certificates"
            ) from None
        self._transport.serializers = _Raw()

    def ask(
        self,
        method: str,
        path: str,
        reply: type[Reply],
        body: object = None,
        *,
        seconds: float | None = None,
        attempts: int = ATTEMPTS,
    ) -> Reply:
        """The answer to a request whose body is bytes or becomes JSON.

        Besides: MissingError, RefusedError, and CorpusError for a body that is too large.
        """
        content = self.insist(self._asked, method, path, body, seconds or REQUEST_SECONDS, attempts=attempts)
        try:
            return msgspec.json.decode(content, type=reply)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise FaultyError(
                f"{self._server} answers as no Elasticsearch or OpenSearch does ({error}); check COTRAIL_SEARCH_URL"
            ) from error

    def insist(self, work: Any, *arguments: object, attempts: int = ATTEMPTS) -> Any:
        """Does the work, again after pauses for as long as it raises BusyError and there are attempts left."""
        retrying = Retrying(
            retry=retry_if_exception_type(BusyError),
            wait=wait_random_exponential(multiplier=0.25, max=LONGEST_PAUSE),
            stop=stop_after_attempt(attempts),
            reraise=True,
        )
        return retrying(work, *arguments)

    def _asked(self, method: str, path: str, body: object, seconds: float) -> bytes:
        headers = None if body is None else {"content-type": "application/json"}
        try:
            meta, content = self._transport.perform_request(
                method, path, body=body, headers=headers or {}, request_timeout=seconds
            )
        except TransportError as error:
            raise self._unreached(error) from None
        if len(content) > MAX_ANSWER_BYTES:
            raise FaultyError(
                f"{self._server} answers with more than {shown(MAX_ANSWER_BYTES)}; "
                "ask for fewer paragraphs, or index shorter ones"
            )
        if meta.status >= 300:
            raise self._rejected(meta.status, content)
        return bytes(content)

    def said(self, fault: object) -> str:
        """What a server says is wrong, which may hold what it was sent."""
        return self._secrets.hidden(str(fault))[:LONGEST_FAULT]

    def _unreached(self, error: TransportError) -> UnavailableError:
        """Only what may be otherwise soon is BusyError."""
        reason = f"{self._server} doesn't answer ({self.said(error)}); check that it runs, COTRAIL_SEARCH_URL"
        if isinstance(error, TlsError):
            return UnavailableError(f"{reason} and, for authorities of your own, COTRAIL_SEARCH_CA")
        passing = isinstance(error, ConnectionError | ConnectionTimeout)
        return (BusyError if passing else UnavailableError)(f"{reason} and the network between")

    def _rejected(self, status: int, content: bytes) -> Exception:
        reason = f"{self._server} answers {status} ({self.said(_fault(content))})"
        if status in BUSY:
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
        return RefusedError(f"{reason}; check that the server is Elasticsearch from 7.17 or OpenSearch")


def _node(server: SearchServer, url: str) -> NodeConfig:
    node = url_to_node_config(url, use_default_ports_for_scheme=True)
    headers = dict(node.headers)
    if server.api_key is not None:
        headers["authorization"] = f"ApiKey {server.api_key}"
    ca = str(server.ca) if server.ca is not None and node.scheme == "https" else None
    if ca is not None:
        ssl.create_default_context(cafile=ca)  # a file that can't be used would otherwise be found out much later
    return replace(node, headers=headers, ca_certs=ca, connections_per_node=CONNECTIONS)


def _fault(content: bytes) -> str:
    """What the server says is wrong, in a line."""
    try:
        return str(msgspec.json.decode(content, type=_Faulty).error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return content.decode(errors="replace").strip() or "and nothing more"
