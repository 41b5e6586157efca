"""What a search server may answer: as much as is sensible, and nothing that ends a process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from cotrail.retrieval.elasticsearch import client
from cotrail.retrieval.elasticsearch.client import Client, FaultyError
from cotrail.retrieval.stores import SearchServer

MOST = 2**20

Write = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def answering(write: Write) -> Iterator[Client]:
    """A client of a server that answers every request so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            write(self)

        def log_message(self, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield Client(SearchServer(urls=(f"http://127.0.0.1:{server.server_port}",)))
        finally:
            server.shutdown()
            thread.join()


def whole(content: bytes) -> Write:
    """The content, its length told before."""

    def write(handler: BaseHTTPRequestHandler) -> None:
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return write


def endless(handler: BaseHTTPRequestHandler) -> None:
    """More and more, until nobody reads it."""
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b" " * 65_536)
    except OSError:
        return


@pytest.fixture(autouse=True)
def _bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_ANSWER_BYTES", MOST)


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (whole(b'"' + b"x" * MOST + b'"'), "more than 1 MiB"),
        (endless, "more than 1 MiB"),
        (whole(b"[" * 100_000), "answers as no Elasticsearch"),
        (whole(b'"\xff"'), "answers as no Elasticsearch"),
        (whole(b'"\\ud800"'), "answers as no Elasticsearch"),
        (whole(b"9" * 5_000), "answers as no Elasticsearch"),
    ],
)
def test_an_answer_that_is_too_large_or_no_json_is_refused(write: Write, said: str) -> None:
    with answering(write) as asked, pytest.raises(FaultyError, match=said):
        asked.ask("GET", "/", Any)


def test_an_answer_may_be_as_large_as_is_said() -> None:
    content = b'"' + b"x" * (MOST - 2) + b'"'
    with answering(whole(content)) as asked:
        assert asked.ask("GET", "/", str) == content.decode()[1:-1]
        assert asked.ask("GET", "/", str) == content.decode()[1:-1]
