"""The HTTP of it: one connection a request under way, kept for the next one."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import httpx2
import msgspec
from tenacity import (
    RetryCallState,
    retry,
    retry_if_exception_type,
    stop_before_delay,
    wait_random_exponential,
)

from cotrail.common.input_limits import MAX_RECORD_BYTES, MIB, shown_size
from cotrail.common.redaction import Secrets
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.openai.counting import Tokenized
from cotrail.engines.language_models.openai.refusals import BUSY, message_in, refusal, seconds_to_wait
from cotrail.engines.language_models.openai.stream import Refused, Stream
from cotrail.errors import BlockedError, CotrailError, StepError, TransientStepError, UnavailableError

CONNECT_SECONDS = 10.0
"""How long connecting may take."""

IDLE_SECONDS = 2.0
"""How long a connection is kept for the next request; servers close idle ones after five seconds or more."""

ATTEMPTS = 3
"""How often a request is sent to a server that is away or busy before its step is given back until it is not."""

MAX_STREAM_BYTES = 256 * MIB
"""How much a server may write for one step: each token comes with a few hundred bytes around it."""

LONGEST_MESSAGE = 500
"""How much of a server's message is passed on, in characters."""

LONGEST_WAIT = 60.0
"""How long a request waits for a busy server at most, in seconds; where it asks for more, the step is given back."""


class _AwayError(UnavailableError):
    """The server can't be reached or takes no request at the moment; seconds: how long it asks to wait."""


class _BrokenOffError(TransientStepError):
    """The connection ended before an answer: perhaps it was idle for too long, perhaps the request ended the server."""


def _failure(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _wait(state: RetryCallState) -> float:
    error = _failure(state)
    asked = error.seconds if isinstance(error, _AwayError) else None
    return _BACKING_OFF(state) if asked is None else asked


def _give_up(state: RetryCallState) -> None:
    error = _failure(state)
    said = f"{error}; given up after {state.attempt_number} requests"
    if isinstance(error, _AwayError):
        raise UnavailableError(said, error.seconds) from error
    raise TransientStepError(said) from error


_TOO_LONG = stop_before_delay(LONGEST_WAIT)


def _enough(state: RetryCallState) -> bool:
    """Whether it was tried often enough: also on a connection that isn't one of those kept from before.

    Where the server went away, each kept connection breaks off; none is kept for longer than `IDLE_SECONDS`.
    """
    if _TOO_LONG(state):
        return True
    if state.attempt_number < ATTEMPTS:
        return False
    waited = state.seconds_since_start or 0.0
    return not isinstance(_failure(state), _BrokenOffError) or waited > IDLE_SECONDS


_BACKING_OFF = wait_random_exponential(multiplier=0.5, max=10)
_again_while_away = retry(
    retry=retry_if_exception_type((_AwayError, _BrokenOffError)),
    wait=_wait,
    stop=_enough,
    retry_error_callback=_give_up,
)


class Client:
    """Sends requests to one server; used in one thread only."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        key = _key(endpoint)
        self._secrets = Secrets((key,))
        self._http = httpx2.AsyncClient(
            # What is unpacked has no bound that could be told from what comes.
            headers={"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {key}"} if key else {}),
            timeout=httpx2.Timeout(endpoint.timeout_seconds, connect=CONNECT_SECONDS, pool=None),
            limits=httpx2.Limits(max_connections=endpoint.in_flight, keepalive_expiry=IDLE_SECONDS),
            follow_redirects=False,
        )

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def complete(self, path: str, body: dict[str, Any], stream: Stream) -> None:
        """Has the server write into a stream until that has enough; then the connection is closed, which ends it there.

        Raises StepError, TransientStepError, UnavailableError, BlockedError.
        """
        async with self._answer(self._endpoint.url + path, body) as response:
            if not response.is_success:
                raise self._refusal(response.status_code, message_in(await _read(response)))
            response.stream = _Bounded(response.stream)
            try:
                async for event in httpx2.EventSource(response):
                    if stream.take(event.data):
                        return
            except Refused as refused:
                raise self._refusal(refused.status, refused.message) from None
        try:
            stream.check()
        except TransientStepError as error:
            raise TransientStepError(self._said(str(error))) from None

    async def tokenize(self, body: dict[str, Any]) -> Tokenized | None:
        """What the server's tokenizer makes of a text; None where the server has none."""
        async with self._answer(f"{self._endpoint.beside}/tokenize", body) as response:
            if response.is_server_error and response.status_code != HTTPStatus.NOT_IMPLEMENTED:
                raise self._refusal(response.status_code, "its tokenizer failed")
            try:
                return msgspec.json.decode(await _read(response), type=Tokenized) if response.is_success else None
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                return None

    @asynccontextmanager
    async def _answer(self, url: str, body: dict[str, Any]) -> AsyncIterator[httpx2.Response]:
        try:
            response = await self._send(url, body)
            try:
                yield response
            finally:
                await response.aclose()
        except httpx2.HTTPError as error:
            raise TransientStepError(f"{url} broke off: {self._said(_reason(error))}") from None

    @_again_while_away
    async def _send(self, url: str, body: dict[str, Any]) -> httpx2.Response:
        try:
            response = await self._http.send(self._http.build_request("POST", url, json=body), stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise _AwayError(f"{url} can't be reached: {self._said(_reason(error))}") from None
        except (httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
            raise _BrokenOffError(f"{url} broke off: {self._said(_reason(error))}") from None
        if response.status_code in BUSY:
            wait = seconds_to_wait(response.headers.get("Retry-After"))
            said = self._said(message_in(await _read(response)))
            await response.aclose()
            raise _AwayError(f"{url} answered {response.status_code}: {said}", wait)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            await response.aclose()
            raise StepError(f"{url} packs its answers, though it is asked not to; have it answer plainly")
        return response

    def _refusal(self, status: int, message: str) -> CotrailError:
        return refusal(self._endpoint, status, self._said(message))

    def _said(self, message: str) -> str:
        """What the server says, which may hold what it was sent."""
        return self._secrets.hidden(message)[:LONGEST_MESSAGE]


def _key(endpoint: Endpoint) -> str:
    """The server's key; empty where it wants none."""
    if endpoint.key_variable is None:
        return ""
    key = os.environ.get(endpoint.key_variable, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise BlockedError(
            f"the environment variable {endpoint.key_variable} holds no key for {endpoint.url}: set it where the "
            "workers start, start them again, then `cotrail resume RUN`"
        )
    return key


def _reason(error: Exception) -> str:
    return f"{type(error).__name__} {error}".strip()


class _Bounded(httpx2.AsyncByteStream):
    """A stream of a sensible size: a server might go on for ever without an event that ends it."""

    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream) -> None:
        assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - an AsyncClient's
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


async def _read(response: httpx2.Response) -> bytes:
    """What the server answers besides its stream, as far as it is of a sensible size."""
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > MAX_RECORD_BYTES:
            break
    return bytes(content[:MAX_RECORD_BYTES])
