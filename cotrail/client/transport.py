"""The transport of the clients: operations of this process or of a server, and streams of server-sent events."""

import asyncio
import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any, BinaryIO, TypeVar, get_args

import httpx2
import msgspec
from httpx2 import HTTPError
from msgspec import Struct
from msgspec.structs import replace
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
)

from cotrail.client.calls import PREFIX, Call, OperationFacts, answer_of, call_of, error_of, event_reader, record_of
from cotrail.common.server_addresses import http_options
from cotrail.data.corpora.document_names import files_in, holds_records, is_document
from cotrail.errors import ConflictError, InputError, TooManyRequestsError, UnavailableError, UnknownNameError
from cotrail.services.library.named_files import FileReference, Upload, check_file_name
from cotrail.services.operations.event_names import END

# Files of requests, sent to the server before them: once, whole or in pieces, and folders file by file.

R = TypeVar("R")

PIECE_BYTES = 8 * 2**20
"""The most bytes of one request; larger files are sent in pieces, which go on where a lost connection broke off."""

MOST_TRIES = 8
"""How often a piece is tried, with pauses of half a minute in the end."""

BYTES = "application/octet-stream"

Send = Callable[[Call], bytes]
"""Sends a request and returns the body of its answer; raises the error that the server tells of."""


class Uploading:
    """Sends files to a server; wait: pauses between two tries of a piece."""

    def __init__(self, send: Send, wait: Any = wait_exponential(multiplier=0.5, max=30)) -> None:  # noqa: B008
        self._send = send
        self._wait = wait

    def upload(self, path: str) -> str:
        """Send a file or a folder, as far as the server doesn't have it; returns the reference that stands for it."""
        place = Path(path)
        try:
            return str(self._folder(place) if place.is_dir() else self._file(place))
        except OSError as error:
            raise InputError(f"{path} can't be read ({error.strerror}); check the path") from error

    def _folder(self, folder: Path) -> FileReference:
        """Send what is read of a folder and those below it, and a list of all its files."""
        listed = {
            str(each.relative_to(folder)): str(self._file(each)) if is_document(each) or holds_records(each) else None
            for each in files_in(folder)
        }
        content = msgspec.json.encode(dict(sorted(listed.items())))
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        reference = FileReference(digest=digest, name=check_file_name(folder.absolute().name or "folder"))
        if not self._is_there(reference):
            self._put(reference, content)
        return msgspec.structs.replace(reference, folder=True)

    def _file(self, path: Path) -> FileReference:
        with path.open("rb") as file:
            digest = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
            reference = FileReference(digest=digest, name=check_file_name(path.name))
            if self._is_there(reference):
                return reference
            size = file.tell()
            if size <= PIECE_BYTES:
                file.seek(0)
                self._put(reference, file.read())
            else:
                self._send_pieces(reference, file, size)
        return reference

    def _is_there(self, reference: FileReference) -> bool:
        try:
            self._send(Call(method="GET", path=f"{PREFIX}/files/{reference.digest}", query=_named(reference)))
        except UnknownNameError:
            return False
        return True

    def _put(self, reference: FileReference, content: bytes) -> None:
        place = f"{PREFIX}/files/{reference.digest}"
        call = Call(method="PUT", path=place, query=_named(reference), body=content, media_type=BYTES)
        self._again(lambda: self._send(call))

    def _send_pieces(self, reference: FileReference, file: BinaryIO, size: int) -> None:
        while not self._again(lambda: self._next_piece(reference, file, size)).done:
            pass

    def _next_piece(self, reference: FileReference, file: BinaryIO, size: int) -> Upload:
        """Ask how far the server is, since an answer may have been lost, and send what follows."""
        upload = self._begin(reference, size)
        if upload.done:
            return upload
        file.seek(upload.offset)
        call = Call(
            method="PATCH",
            path=f"{PREFIX}/uploads/{upload.upload}",
            headers=(("Upload-Offset", str(upload.offset)),),
            body=file.read(PIECE_BYTES),
            media_type=BYTES,
        )
        return msgspec.json.decode(self._send(call), type=Upload)

    def _begin(self, reference: FileReference, size: int) -> Upload:
        announced = {"digest": reference.digest, "name": reference.name, "bytes": size}
        call = Call(method="POST", path=f"{PREFIX}/uploads", body=msgspec.json.encode(announced))
        return msgspec.json.decode(self._send(call), type=Upload)

    def _again(self, attempt: Callable[[], R]) -> R:
        """Try again where the connection is lost."""
        retrying = Retrying(
            retry=retry_if_exception_type((UnavailableError, ConflictError)),
            wait=self._wait,
            stop=stop_after_attempt(MOST_TRIES),
            reraise=True,
        )
        return retrying(attempt)


def _named(reference: FileReference) -> tuple[tuple[str, str], ...]:
    return (("name", reference.name or ""),)


# Streams of server-sent events: read from a server, and gone on with where the connection is lost.

SILENT_SECONDS = 60.0
"""A stream from which nothing comes for so long is lost: the server sends a comment after 15 seconds."""

LOST_SECONDS = 600.0
"""How long a server may be away before a follower gives up."""

PAUSE_SECONDS = 1.0
"""The pause before connecting again, unless the server says another one."""

Open = Callable[[str], AbstractContextManager[Iterable[str]]]
"""Opens the stream behind the event of this id, or from the beginning, and gives its lines; raises CotrailError."""

AsyncOpen = Callable[[str], AbstractAsyncContextManager[AsyncIterable[str]]]


class _Sent(Struct):
    """An event as it came."""

    id: str = ""
    name: str = ""
    data: str = ""


class _Place:
    """Where a reader of a stream is: takes its lines, and knows behind which event and after which pause to go on."""

    def __init__(self, operation: OperationFacts) -> None:
        (event,) = get_args(operation.answer_type)
        self._decoder = msgspec.json.Decoder(event)
        self._sent = _Sent()
        self._heard: float | None = None
        self.last = ""
        self.seconds = PAUSE_SECONDS

    def begin(self) -> str:
        """Begin to read again; returns the id of the last event that came whole."""
        self._sent = _Sent()
        return self.last

    def take(self, line: str) -> Any:
        """Take a line; returns the record whose event it ends, None where it ends none."""
        self._heard = monotonic()
        sent, (name, _, value) = self._sent, line.partition(":")
        value = value.removeprefix(" ")
        if name == "retry" and value.isdigit():
            self.seconds = int(value) / 1000
        elif name == "id":
            sent.id = value
        elif name == "event":
            sent.name = value
        elif name == "data":
            sent.data = value
        elif not line and sent.data:
            self.last, self._sent = sent.id or self.last, _Sent()
            return record_of(self._decoder, sent.name, sent.data)
        return None

    @property
    def is_lost(self) -> bool:
        """Whether nothing has come yet, or nothing for so long that it isn't worth to try again."""
        return self._heard is None or monotonic() - self._heard > LOST_SECONDS


class Follower:
    """The records of a stream, without a gap or a repetition, whichever process of the server answers."""

    def __init__(self, operation: OperationFacts, open_: Open, pause: Callable[[float], object] = sleep) -> None:
        self._place = _Place(operation)
        self._open = open_
        self._pause = pause

    def __iter__(self) -> Iterator[Any]:
        """Yield the records up to the last; raises the error that the server answers with, UnavailableError if none."""
        while True:
            try:
                with self._open(self._place.begin()) as lines:
                    for line in lines:
                        if (record := self._place.take(line)) is not None:
                            yield record
                            if _is_last(record):
                                return
            except UnavailableError:
                if self._place.is_lost:
                    raise
            self._pause(self._place.seconds)


class AsyncFollower:
    """The same for a program with an event loop."""

    def __init__(
        self, operation: OperationFacts, open_: AsyncOpen, pause: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        self._place = _Place(operation)
        self._open = open_
        self._pause = pause

    async def __aiter__(self) -> AsyncIterator[Any]:
        """Yield the records up to the last; raises the error that the server answers with, UnavailableError if none."""
        while True:
            try:
                async with self._open(self._place.begin()) as lines:
                    async for line in lines:
                        if (record := self._place.take(line)) is not None:
                            yield record
                            if _is_last(record):
                                return
            except UnavailableError:
                if self._place.is_lost:
                    raise
            await self._pause(self._place.seconds)


def _is_last(event: Struct) -> bool:
    """Whether nothing follows this one."""
    return event.__struct_config__.tag == END


# The transport to a server: operations that are called in this process are carried out there.

PATIENCE_SECONDS = 600.0
"""How long an answer may take: scores of large runs are read and computed first."""

CONNECT_SECONDS = 10.0

MOST_TRIES = 4
"""How often a request is sent that may be sent again."""

RETRY_SECONDS = 0.25
"""Half the pause after the first try; each is twice the one before, unless the server asks for a longer one."""

KEPT_CONNECTIONS = 20
"""How many unused connections an asynchronous client keeps."""

LONGEST_PAUSE = 60.0
"""The longest pause that a server may ask for, in seconds."""


class RemoteTransport:
    """Carries out operations on a server.

    url: its address, without `/v1`; token: a token of its, empty for none. pause: seconds before it is asked again.
    """

    def __init__(self, url: str, token: str = "", pause: float = RETRY_SECONDS) -> None:
        self.url = url.rstrip("/")
        self._again = Retrying(**_again(pause))
        self._http = httpx2.Client(base_url=self.url, headers=_headers(token), **http_options())

    def carry_out(self, operation: OperationFacts, arguments: Mapping[str, Any]) -> Any:
        """What the operation answers; raises the error that the server answers with, UnavailableError where none."""
        call = call_of(operation, arguments, self.upload)
        return self._answer(operation, call)

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def upload(self, path: str) -> str:
        """Send a file or a folder, unless the server has it; returns the reference that stands for it in requests."""
        return Uploading(self._received).upload(path)

    def _answer(self, operation: OperationFacts, call: Call) -> Any:
        if operation.answers == "stream":
            return self._pieces(call)
        if operation.answers == "events":
            followed = operation.method == "GET"
            return iter(Follower(operation, partial(self._lines, call))) if followed else self._events(operation, call)
        return answer_of(operation, self._send(call))

    def _events(self, operation: OperationFacts, call: Call) -> Iterator[Any]:
        """The records of a stream as they come; who stops reading hangs up."""
        read = event_reader(operation)
        with self._answered(call) as response:
            for line in response.iter_lines():
                if (record := read(line)) is not None:
                    yield record

    @contextmanager
    def _lines(self, call: Call, last: str) -> Iterator[Iterator[str]]:
        """The lines of a stream behind the event of this id."""
        with self._answered(_behind(call, last), SILENT_SECONDS) as response:
            yield response.iter_lines()

    def _send(self, call: Call) -> bytes:
        """Send a request, again where that is safe and may help; returns the body of the answer."""
        return self._again(self._received, call) if call.repeatable else self._received(call)

    def _received(self, call: Call) -> bytes:
        with self._answered(call) as response:
            return response.read()

    def _pieces(self, call: Call) -> Iterator[bytes]:
        with self._answered(call) as response:
            yield from response.iter_bytes()

    @contextmanager
    def _answered(self, call: Call, patience: float = PATIENCE_SECONDS) -> Iterator[httpx2.Response]:
        """The answer to a request, whose body is still to be read; patience: how many seconds it may be silent."""
        try:
            with self._http.stream(call.method, call.path, **_request(call, patience)) as response:
                if response.status_code >= 400:
                    raise error_of(response.status_code, response.read(), _seconds(response))
                yield response
        except HTTPError as error:
            raise _away(self.url, error) from error


class AsyncRemoteTransport:
    """The same for a program with an event loop, which continues while a server is waited for.

    Files are read and sent from a thread.
    """

    def __init__(self, url: str, token: str = "", pause: float = RETRY_SECONDS) -> None:
        self.url = url.rstrip("/")
        self._again = AsyncRetrying(**_again(pause))
        # As many streams as a program wants: each keeps a connection.
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS)
        self._http = httpx2.AsyncClient(base_url=self.url, headers=_headers(token), limits=limits, **http_options())

    async def carry_out(self, operation: OperationFacts, arguments: Mapping[str, Any]) -> Any:
        """What the operation answers, which is no stream; raises as `RemoteTransport.carry_out` does."""
        call = await self._call(operation, arguments)
        content = await (self._again(self._received, call) if call.repeatable else self._received(call))
        return answer_of(operation, content)

    async def follow(self, operation: OperationFacts, arguments: Mapping[str, Any]) -> AsyncIterator[Any]:
        """The pieces or the records of a stream as they come; a reader that stops hangs up."""
        call = await self._call(operation, arguments)
        if operation.answers == "stream":
            async with self._answered(call) as response:
                async for piece in response.aiter_bytes():
                    yield piece
        elif operation.method == "GET":
            async for record in AsyncFollower(operation, partial(self._lines, call)):
                yield record
        else:
            read = event_reader(operation)
            async with self._answered(call) as response:
                async for line in response.aiter_lines():
                    if (record := read(line)) is not None:
                        yield record

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def _call(self, operation: OperationFacts, arguments: Mapping[str, Any]) -> Call:
        loop = asyncio.get_running_loop()

        def received(call: Call) -> bytes:
            return asyncio.run_coroutine_threadsafe(self._received(call), loop).result()

        return await asyncio.to_thread(call_of, operation, arguments, Uploading(received).upload)

    @asynccontextmanager
    async def _lines(self, call: Call, last: str) -> AsyncIterator[AsyncIterator[str]]:
        async with self._answered(_behind(call, last), SILENT_SECONDS) as response:
            yield response.aiter_lines()

    async def _received(self, call: Call) -> bytes:
        async with self._answered(call) as response:
            return await response.aread()

    @asynccontextmanager
    async def _answered(self, call: Call, patience: float = PATIENCE_SECONDS) -> AsyncIterator[httpx2.Response]:
        try:
            async with self._http.stream(call.method, call.path, **_request(call, patience)) as response:
                if response.status_code >= 400:
                    raise error_of(response.status_code, await response.aread(), _seconds(response))
                yield response
        except HTTPError as error:
            raise _away(self.url, error) from error


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def _again(pause: float) -> dict[str, Any]:
    """How often a request is sent again that may be, and when."""
    return {
        "retry": retry_if_exception_type((UnavailableError, TooManyRequestsError)),
        "stop": stop_after_attempt(MOST_TRIES),
        "wait": lambda state: max(_asked_for(state), pause * 2**state.attempt_number),
        "reraise": True,
    }


def _request(call: Call, patience: float) -> dict[str, Any]:
    return {
        "params": list(call.query),
        "content": call.body,
        "headers": {**dict(call.headers), **({} if call.body is None else {"Content-Type": call.media_type})},
        "timeout": httpx2.Timeout(patience, connect=CONNECT_SECONDS),
    }


def _behind(call: Call, last: str) -> Call:
    """The request for a stream behind the event of this id."""
    return replace(call, headers=(*call.headers, *((("Last-Event-ID", last),) if last else ())))


def _away(url: str, error: HTTPError) -> UnavailableError:
    return UnavailableError(f"the server at {url} doesn't answer ({error}); check the address")


def _seconds(response: httpx2.Response) -> float | None:
    """The pause that an answer asks for."""
    asked = response.headers.get("Retry-After", "")
    return float(asked) if asked.isdecimal() else None


def _asked_for(state: RetryCallState) -> float:
    """The pause that the last answer asked for."""
    error = state.outcome.exception() if state.outcome else None
    return min(getattr(error, "seconds", None) or 0.0, LONGEST_PAUSE)
