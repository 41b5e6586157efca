"""A real HTTP server that answers as a test tells it, including what no real model server does on request."""

import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from msgspec import Struct

KEY = "sentinel-key-0123456789"
"""The API key of a real server in the tests."""

Reply = Callable[[BaseHTTPRequestHandler], None]


class Asked(Struct, frozen=True):
    """A received request."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Served:
    """Answers each request with the next reply, and then always with the last; `tokenizer` answers at /tokenize,
    `listing` whatever is sent by GET.

    cut: set as soon as a client went away in the middle of a stream.
    port: a free one unless given; a former server may have used it.
    """

    def __init__(self, port: int = 0) -> None:
        self.replies: list[Reply] = []
        self.tokenizer: Reply = answer(404, {"detail": "Not Found"})
        self.listing: Reply = answer(404, {"detail": "Not Found"})
        self.asked: list[Asked] = []
        self.cut = threading.Event()
        self.closed = False
        self._server = QuietServer(("127.0.0.1", port), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def generations(self) -> list[Asked]:
        """The requests other than those for token counts."""
        return [asked for asked in self.asked if asked.path != "/tokenize"]

    def reply(self, path: str) -> Reply:
        if path == "/tokenize":
            return self.tokenizer
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    def close(self) -> None:
        """Ends it; kept-alive connections end at their next request."""
        self.closed = True
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def answer(status: int, content: object = None, headers: Mapping[str, str] | None = None) -> Reply:
    """A complete answer, as JSON."""

    def reply(handler: BaseHTTPRequestHandler) -> None:
        body = json.dumps(content).encode()
        handler.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return reply


def computed(of: Callable[[dict[str, Any]], object]) -> Reply:
    """A complete answer that is made from the request's body."""
    return lambda handler: answer(200, of(handler.body))(handler)  # type: ignore[attr-defined]


def verbatim(content: bytes) -> Reply:
    """An answer of these bytes, whatever they are."""

    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return reply


def streamed(events: Iterable[object]) -> Reply:
    """A stream of events: objects as JSON, strings verbatim; None breaks it off."""

    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream; charset=utf-8")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for event in events:
            if event is None:
                handler.close_connection = True
                return
            data = event if isinstance(event, str) else json.dumps(event)
            _chunk(handler, f"data: {data}\n\n".encode())
        _chunk(handler, b"")

    return reply


def piece(text: str, finish: str | None = None, **more: object) -> dict[str, object]:
    """An event of a completion."""
    return {"choices": [{"index": 0, "text": text, "finish_reason": finish}], **more}


def delta(finish: str | None = None, **content: object) -> dict[str, object]:
    """An event of a chat."""
    return {"choices": [{"index": 0, "delta": content, "finish_reason": finish}]}


def held(until: threading.Event, reply: Reply) -> Reply:
    """The same, but only after an event is set."""

    def later(handler: BaseHTTPRequestHandler) -> None:
        until.wait(240)
        reply(handler)

    return later


def paused(before: Iterable[object], until: threading.Event, after: Iterable[object]) -> Iterator[object]:
    """Events that pause until an event is set."""
    yield from before
    until.wait(240)
    yield from after


class QuietServer(ThreadingHTTPServer):
    request_queue_size = 512

    def handle_error(self, request: object, client_address: object) -> None:
        """Logs nothing about clients that went away between two requests."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def _chunk(handler: BaseHTTPRequestHandler, data: bytes) -> None:
    handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def _handler(served: Served) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.body = body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if served.closed:
                self.close_connection = True
                return
            served.asked.append(Asked(self.path, dict(self.headers), body))
            try:
                served.reply(self.path)(self)
            except (BrokenPipeError, ConnectionResetError):
                served.cut.set()
                self.close_connection = True

        def do_GET(self) -> None:
            served.listing(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named so by the library
            pass

    return Handler
