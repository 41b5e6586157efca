"""Requests that stay half sent are closed; what takes long by itself isn't."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from cotrail.api import probes
from tests.conftest import wait_until

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"


async def slow(scope: Any, receive: Any, send: Any) -> None:
    """Reads the body, and answers after more than a client's time."""
    while (message := await receive()).get("more_body"):
        pass
    if message["type"] == "http.request":
        await asyncio.sleep(1.5 * probes.BODY_SECONDS)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(probes, "HEAD_SECONDS", 1.0)
    monkeypatch.setattr(probes, "BODY_SECONDS", 1.0)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(slow, http=probes.Patient, lifespan="off", log_config=None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    wait_until(lambda: server.started, "the server listens")
    yield int(listener.getsockname()[1])
    server.should_exit = True
    thread.join()


@contextlib.contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        yield connection


@pytest.mark.parametrize("half", [b"", b"POST", HEAD, HEAD + b"Content-Length: 9\r\n\r\nhalf"])
def test_what_stays_half_sent_is_closed(port: int, half: bytes) -> None:
    with connected(port) as connection:
        connection.sendall(half)
        assert connection.recv(1) == b""


def test_a_whole_request_may_take_long_and_a_second_one_that_is_half_sent_is_closed(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(HEAD + b"Content-Length: 1\r\n\r\na")
        answer = b""
        while not answer.endswith(b"ok"):
            answer += connection.recv(1000)
        connection.sendall(HEAD)
        assert connection.recv(1) == b""
