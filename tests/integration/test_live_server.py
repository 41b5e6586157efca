"""Streams of servers that end, are killed, or have as many as they can: clients go on with another process."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import Engine

from cotrail.client.transport import RemoteTransport
from cotrail.errors import UnavailableError
from cotrail.models.execution.ledger import Ledger
from cotrail.services.operations.operation import through
from cotrail.services.runs import following
from cotrail.services.runs.following import run_events
from cotrail.services.runs.live_events import Progressed
from cotrail.systems.registry import find_system
from tests.conftest import wait_until
from tests.integration.stepping import LEASE, STEPS, begin, run_to_end

RUN = "followed"

pytestmark = pytest.mark.usefixtures("cotrail")

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture
def url(port: int) -> str:
    return f"http://127.0.0.1:{port}"


@pytest.fixture
def start(database: str, port: int, url: str, tmp_path: Path) -> Iterator[Start]:
    """Starts a server on the port, with these further settings."""
    started: list[subprocess.Popen[bytes]] = []

    def start(**variables: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "uvicorn", "cotrail.api.app:application", "--factory", "--port", str(port)]
        own = {"COTRAIL_DATABASE_URL": database.replace("+psycopg", ""), "COTRAIL_HOME": str(tmp_path), **variables}
        started.append(subprocess.Popen(command, env=os.environ | own))
        wait_until(lambda: answers(url), "the server answers")
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def answers(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/v1/runs").is_success
    except httpx2.HTTPError:
        return False


@contextmanager
def streaming(url: str) -> Iterator[Iterator[str]]:
    """The lines of the run's stream, of which one has come."""
    with httpx2.stream("GET", f"{url}/v1/runs/{RUN}/events", timeout=60) as response:
        lines = response.iter_lines()
        next(lines)
        yield lines


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_client_goes_on_with_the_next_process(engine: Engine, url: str, start: Start, number: signal.Signals) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    first, second = begin(engine, 2, id=RUN)
    run_to_end(ledger, [first])
    server = start()
    with closing(RemoteTransport(url)) as door, through(door):
        following = iter(run_events(RUN))
        told: list[Any] = []
        while not told or not isinstance(told[-1], Progressed):
            told.append(next(following))
        # The stream is open and its reader reads nothing: the server ends all the same.
        server.send_signal(number)
        server.wait(100)
        start()
        run_to_end(ledger, [second])
        told += following
    events = [each for each in told if each.id]
    assert [each.id for each in events if getattr(each, "status", "") != "open"] == [
        each.id for each in run_events(RUN) if each.id
    ]
    assert len({each.id for each in events}) == len(events) == 2 * STEPS + 3
    assert told[-1].state == "finished"


def test_a_process_sends_as_many_streams_as_it_may(engine: Engine, url: str, start: Start) -> None:
    begin(engine, 1, id=RUN)
    start(COTRAIL_STREAMS="1")
    with streaming(url):
        refused = httpx2.get(f"{url}/v1/runs/{RUN}/events")
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "2")
        with (
            closing(RemoteTransport(url)) as door,
            through(door),
            pytest.raises(UnavailableError, match="as many streams as it can"),
        ):
            next(iter(following.run_events(RUN)))
    wait_until(lambda: begins(url), "who hung up has made room")


def test_only_the_headers_of_a_stream_are_answered_at_once(engine: Engine, url: str, start: Start) -> None:
    begin(engine, 1, id=RUN)
    start(COTRAIL_STREAMS="1")
    for _ in range(3):
        head = httpx2.head(f"{url}/v1/runs/{RUN}/events", timeout=60)
        assert (head.status_code, head.content, head.headers["cache-control"]) == (200, b"", "no-store")
    wait_until(lambda: begins(url), "no stream is left that nobody reads")
    whole = httpx2.head(f"{url}/v1/runs/{RUN}")
    assert int(whole.headers["content-length"]) == len(httpx2.get(f"{url}/v1/runs/{RUN}").content)


def begins(url: str) -> bool:
    with httpx2.stream("GET", f"{url}/v1/runs/{RUN}/events") as response:
        return response.is_success


def test_a_run_that_nobody_knows_is_refused_as_here(engine: Engine, url: str, start: Start) -> None:
    start()
    with (
        closing(RemoteTransport(url)) as door,
        through(door),
        pytest.raises(Exception, match="there is no run 'absent'"),
    ):
        list(following.run_events("absent"))
