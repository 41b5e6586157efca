"""HTTP client with retries and exponential backoff; each request under way has a connection of its own."""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Protocol, cast

import httpx2
import msgspec
from msgspec.structs import replace
from tenacity import RetryCallState, retry, retry_if_exception_type, stop_before_delay, wait_random_exponential

from cotrail.common.log_formatting import Secrets
from cotrail.common.printable_text import cut
from cotrail.common.server_addresses import http_options
from cotrail.common.text_files import MAX_RECORD_BYTES, MIB, shown_size
from cotrail.engines.language_models.served import refusals
from cotrail.engines.language_models.served.pacing import allows_nothing, pause_asked
from cotrail.engines.language_models.served.protocols.delta import Refused
from cotrail.engines.language_models.token_counts import Tokenized
from cotrail.engines.server_address import ServerAddress, key_in
from cotrail.errors import (
    BlockedError,
    CotrailError,
    InputError,
    QuotaError,
    StepError,
    TransientStepError,
    UnavailableError,
)

CONNECT_SECONDS = 10.0
"""Timeout for connecting."""

LOOK_SECONDS = 20.0
"""How long a server may take to say what it has."""

IDLE_SECONDS = 2.0
"""Lifetime of an idle connection; servers close theirs after five seconds or more."""

MAX_STREAM_BYTES = 256 * MIB
"""The most bytes that a server may write for one step: each token comes with a few hundred bytes around it."""

LONGEST_MESSAGE = 500
"""Characters of a server's message that are passed on."""

LONGEST_WAIT = 60.0
"""Seconds that a request waits for a busy server at most; where the server asks for more, the step is given back."""


class AnswerStream(Protocol):
    """Takes an answer, in events or whole; see `ServerStream`."""

    def take(self, data: str) -> bool:
        """Takes an event; returns whether the answer is complete. Raises Refused, TransientStepError."""

    def take_whole(self, answer: Mapping[str, Any]) -> None:
        """Takes an answer that is no stream. Raises Refused, TransientStepError."""

    def check(self) -> None:
        """Raises TransientStepError where the stream ended before the answer was complete."""


class _AwayError(UnavailableError):
    """The server is unreachable or takes no requests at the moment; seconds: how long it asks to wait."""


class _BrokenOffError(TransientStepError):
    """The connection ended before a response: it was idle for too long, or the request crashed the server."""


def _failure(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _wait(state: RetryCallState) -> float:
    error = _failure(state)
    seconds = error.seconds if isinstance(error, _AwayError) else None
    return _BACKOFF(state) if seconds is None else seconds


def _give_up(state: RetryCallState) -> None:
    error = _failure(state)
    message = f"{error}; given up after {state.attempt_number} requests"
    if isinstance(error, _AwayError):
        raise UnavailableError(message, error.seconds) from error
    raise TransientStepError(message) from error


_OUT_OF_TIME = stop_before_delay(LONGEST_WAIT)


def _exhausted(state: RetryCallState) -> bool:
    """Return whether to stop retrying.

    When a server goes away, every kept connection breaks off, however many there are. Such failures therefore don't
    count as attempts until `IDLE_SECONDS` have passed, when no connection from before is left.
    """
    if _OUT_OF_TIME(state):
        return True
    if state.attempt_number < refusals.ATTEMPTS:
        return False
    waited = state.seconds_since_start or 0.0
    return not isinstance(_failure(state), _BrokenOffError) or waited > IDLE_SECONDS


_BACKOFF = wait_random_exponential(multiplier=0.5, max=10)
_retried_while_away = retry(
    retry=retry_if_exception_type((_AwayError, _BrokenOffError)),
    # The server's own `Retry-After` comes before the exponential backoff.
    wait=_wait,
    stop=_exhausted,
    retry_error_callback=_give_up,
)


class Witness(Protocol):
    """Learns what a server says in addition to its answers."""

    def answered(self, headers: Mapping[str, str]) -> None:
        """A response came, with these headers."""

    def refused(self, status: int, reported: refusals.Reported) -> None:
        """The server refused a request; no message has the key."""


def _http(endpoint: ServerAddress, headers: dict[str, str], most: int | None) -> httpx2.AsyncClient:
    """Connections to a server, at most so many."""
    return httpx2.AsyncClient(
        headers=headers,
        **http_options(),
        # No timeout for a free connection: requests beyond `in_flight` wait for as long as it takes.
        timeout=httpx2.Timeout(endpoint.timeout_seconds, connect=CONNECT_SECONDS, pool=None),
        limits=httpx2.Limits(max_connections=most, keepalive_expiry=IDLE_SECONDS),
        follow_redirects=False,
    )


class ServerClient:
    """Sends requests to one server; used in one thread only.

    headers: of each request, by its key, which is empty where it needs none.
    learn: takes the headers of each response, when its request was sent and when it came, of a server whose refusals
        are the caller's to wait for; None for one that is asked again here.
    witness: sees every response too.
    """

    def __init__(
        self,
        endpoint: ServerAddress,
        headers: Callable[[str], dict[str, str]],
        learn: Callable[[Mapping[str, str], float, float], None] | None = None,
        witness: Witness | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._learn = learn
        self._witness = witness
        key = key_of(endpoint)
        self._secrets = Secrets((key,))
        # The size of unpacked content can't be bounded by what arrives.
        self._http = _http(endpoint, {"Accept-Encoding": "identity"} | headers(key), endpoint.most_in_flight)
        # Without a bound, for answers that somebody waits for: these would otherwise queue behind a whole evaluation.
        self._ahead = _http(endpoint, {"Accept-Encoding": "identity"} | headers(key), None)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._http.aclose()
        await self._ahead.aclose()

    async def complete(
        self, path: str, body: dict[str, Any], stream: AnswerStream, *, streams: bool, ahead: bool = False
    ) -> None:
        """Has the server write into a stream until that is complete; closing the connection ends the generation there.

        streams: whether the server was asked to answer in events; ahead: whether this request waits for no others.
        Raises StepError, TransientStepError, UnavailableError, BlockedError.
        """
        async with self._answer(self._endpoint.url + path, body, self._ahead if ahead else None) as response:
            if self._witness:
                self._witness.answered(response.headers)
            if not response.is_success:
                raise self.refusal(response.status_code, refusals.reported_in(await _read(response)), response.headers)
            if not streams:
                self.take_whole(await _read(response), stream)
                return
            response.stream = _bounded(response)
            try:
                async for event in httpx2.EventSource(response):
                    # An event without data keeps the connection alive.
                    if event.data and stream.take(event.data):
                        return
            except Refused as refused:
                raise self._refused(refused) from None
        try:
            stream.check()
        except TransientStepError as error:
            raise TransientStepError(self._said(str(error))) from None

    def take_whole(self, content: bytes, stream: AnswerStream) -> None:
        """Has a stream take an answer that is none; raises what `complete` does."""
        try:
            stream.take_whole(msgspec.json.decode(content, type=dict[str, Any]))
        except Refused as refused:
            raise self._refused(refused) from None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise TransientStepError(f"the server's answer can't be read: {error}") from None

    async def ask(self, url: str, body: dict[str, Any], method: str = "POST") -> bytes:
        """The content of an answer that is no stream, up to `MAX_STREAM_BYTES`; raises as `complete` does.

        method: with GET, the body's fields are the parameters of the URL.
        """
        async with self._answer(url, body, method=method) as response:
            if not response.is_success:
                raise self.refusal(response.status_code, refusals.reported_in(await _read(response)), response.headers)
            response.stream = _bounded(response)
            return await response.aread()

    async def tokenize(self, url: str, body: dict[str, Any]) -> Tokenized | None:
        """The server's tokenization of a text; None where it offers none."""
        async with self._answer(url, body) as response:
            if response.is_server_error and response.status_code != HTTPStatus.NOT_IMPLEMENTED:
                raise self.refusal(response.status_code, refusals.Reported("its tokenizer failed"))
            try:
                return msgspec.json.decode(await _read(response), type=Tokenized) if response.is_success else None
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                return None

    async def described(self, url: str) -> dict[str, Any]:
        """What the server says to a client that only looks there; raises InputError where it says nothing."""
        try:
            async with self._http.stream("GET", url, timeout=LOOK_SECONDS) as response:
                content = await _read(response)
                if not response.is_success:
                    raise InputError(f"{url} answered {response.status_code}: {self._said(cut(content.decode(), 300))}")
                return msgspec.json.decode(content, type=dict[str, Any])
        except httpx2.TimeoutException:
            raise InputError(f"{url} didn't answer within {LOOK_SECONDS:.0f} s") from None
        except httpx2.HTTPError as error:
            raise InputError(f"{url} can't be reached: {self._said(_reason(error))}") from None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise InputError(f"{url} answered something else than JSON: look whether the address is an API's") from None

    @asynccontextmanager
    async def _answer(
        self, url: str, body: dict[str, Any], http: httpx2.AsyncClient | None = None, method: str = "POST"
    ) -> AsyncIterator[httpx2.Response]:
        fields: dict[str, Any] = {"params": body} if method == "GET" else {"json": body}
        client = http or self._http
        try:
            response = await self._send(url, client, client.build_request(method, url, **fields))
            try:
                yield response
            finally:
                await response.aclose()
        except httpx2.HTTPError as error:
            # `from None` here and below: the library's errors hold the request, and with it the key.
            raise TransientStepError(f"{url} broke off: {self._said(_reason(error))}") from None

    @_retried_while_away
    async def _send(self, url: str, http: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
        sent = time.monotonic()
        try:
            response = await http.send(request, stream=True)
        # Nothing was sent yet. Broken connections, below, may have delivered the request.
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise _AwayError(f"{url} can't be reached: {self._said(_reason(error))}") from None
        except (httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
            raise _BrokenOffError(f"{url} broke off: {self._said(_reason(error))}") from None
        # Of a hosted model, refusals are the business of `Pacing`, which holds back the whole account and not one
        # request.
        if self._learn:
            self._learn(response.headers, sent, time.monotonic())
        elif response.status_code in refusals.BUSY:
            reported = refusals.reported_in(await _read(response))
            await response.aclose()
            refusal = self.refusal(response.status_code, reported, response.headers)
            if isinstance(refusal, QuotaError):
                raise refusal
            message = f"{url} answered {response.status_code}: {self._said(reported.message)}"
            raise _AwayError(message, pause_asked(response.headers) or reported.pause)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            await response.aclose()
            raise StepError(f"{url} compresses its responses, though it was asked not to; turn its compression off")
        return response

    def refusal(
        self, status: int, reported: refusals.Reported, headers: Mapping[str, str] = MappingProxyType({})
    ) -> CotrailError:
        """What a refusal is for the step that asked; its message is without the secrets that the server may repeat."""
        none = (refusals.NOTHING_ALLOWED,) if allows_nothing(headers) else ()
        hidden = replace(reported, message=self._said(reported.message), kinds=(*reported.kinds, *none))
        if self._witness:
            self._witness.refused(status, hidden)
        return refusals.step_error(self._endpoint, status, hidden, pause_asked(headers))

    def _refused(self, refused: Refused) -> CotrailError:
        return self.refusal(refused.status, refusals.Reported(refused.message, refused.kinds, pause=refused.pause))

    def _said(self, message: str) -> str:
        """A server's message, without the secrets that it may repeat."""
        return self._secrets.hidden(message)[:LONGEST_MESSAGE]


def key_of(endpoint: ServerAddress) -> str:
    """The server's API key; empty where it needs none. Raises BlockedError where its variable holds none."""
    if endpoint.key_variable is None:
        return ""
    key = key_in(endpoint.key_variable)
    if not key:
        raise BlockedError(
            f"the environment variable {endpoint.key_variable} holds no key for {endpoint.url}: set it where the "
            "workers start, start them again, then `cotrail resume RUN`"
        )
    return key


def _reason(error: Exception) -> str:
    return f"{type(error).__name__} {error}".strip()


class _Bounded(httpx2.AsyncByteStream):
    """A stream of bounded size: a server might write without end and without an event that completes the stream."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = 0
        async for piece in self._stream:
            total += len(piece)
            if total > MAX_STREAM_BYTES:
                raise StepError(f"the server wrote more than {shown_size(MAX_STREAM_BYTES)}; look at what it writes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


def _bounded(response: httpx2.Response) -> _Bounded:
    # An AsyncClient's responses have no other streams.
    return _Bounded(cast(httpx2.AsyncByteStream, response.stream))


async def _read(response: httpx2.Response) -> bytes:
    """The content of a response that is no stream, up to a bounded size."""
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        # Cut and not refused: what was read of an error is shown, and what is no error can't be decoded then.
        if len(content) > MAX_RECORD_BYTES:
            break
    return bytes(content[:MAX_RECORD_BYTES])
