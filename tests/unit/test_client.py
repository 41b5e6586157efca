"""The clients: written from the operations, and asking again where that is safe. And servers by their names."""

import asyncio
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from cotrail.client import AsyncClient, Client
from cotrail.client.door import RemoteDoor
from cotrail.client.generate import source
from cotrail.client.groups import Runs
from cotrail.configuration.servers import find_server
from cotrail.errors import InputError, UnavailableError, UnknownNameError

ROOT = Path(__file__).parents[2]
PAGE = json.dumps({"runs": [], "more": 0}).encode()


class Answering(ThreadingHTTPServer):
    """A server that answers with what a test lays ready, and notes what it is asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.ready: list[tuple[int, bytes]] = []
        self.asked: list[tuple[str, str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Answering

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append((self.command, self.path, self.headers["Idempotency-Key"]))
        status, content = self.server.ready.pop(0)
        if status == 0:  # the connection is lost
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Answering]:
    with Answering() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def problem(name: str) -> bytes:
    return json.dumps({"type": f"https://x/#{name}", "detail": "so it is", "notes": ["a note"]}).encode()


def test_the_methods_are_those_of_the_operations() -> None:
    written = (ROOT / "client" / "groups.py").read_text("utf-8")
    assert written == source(), "run `python -m cotrail.client.generate > groups.py; mv groups.py client/`"


def test_what_changes_nothing_is_asked_again(server: Answering) -> None:
    server.ready = [(0, b""), (503, problem("unavailable")), (429, problem("too-many-requests")), (200, PAGE)]
    door = RemoteDoor(server.url, pause=0)
    assert Runs(door).index(["state=finished"], limit=3).more == 0
    door.close()
    assert server.asked == [("GET", "/v1/runs?filters=state%3Dfinished&limit=3&order=newest", None)] * 4


def test_what_may_take_effect_twice_is_asked_once(server: Answering) -> None:
    server.ready = [(503, problem("unavailable"))]
    with Client(server.url) as client, pytest.raises(UnavailableError, match="so it is"):
        client.runs.pause("latest")
    assert server.asked == [("POST", "/v1/runs/latest/pause", None)]


def test_errors_are_those_of_the_command_line(server: Answering) -> None:
    server.ready = [(404, problem("unknown-name"))]
    with Client(server.url) as client, pytest.raises(UnknownNameError, match="so it is") as refused:
        client.runs.show("a/b")
    assert refused.value.__notes__ == ["a note"]
    assert server.asked == [("GET", "/v1/runs/a%2Fb", None)]


def test_an_event_loop_goes_on_while_a_client_waits(server: Answering) -> None:
    async def both() -> list[int]:
        async with AsyncClient(server.url) as client:
            return [page.more for page in await asyncio.gather(client.runs.index(), client.runs.index())]

    server.ready = [(200, PAGE)] * 2
    assert asyncio.run(both()) == [0, 0]


def test_servers_have_names_and_tokens_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "servers.toml").write_text(
        '[servers.team]\nurl = "https://team.example.org"\ntoken_variable = "TEAM_TOKEN"\n'
        '[servers.own]\nurl = "http://127.0.0.1:8420"\ntoken_file = "own.token"\n'
    )
    with pytest.raises(InputError, match="TEAM_TOKEN"):
        find_server("team", tmp_path)
    monkeypatch.setenv("TEAM_TOKEN", "t")
    assert find_server("team", tmp_path).token == "t"
    token = tmp_path / "own.token"
    token.write_text("secret\n")
    token.chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        find_server("own", tmp_path)
    token.chmod(0o600)
    assert (find_server("own", tmp_path).url, find_server("own", tmp_path).token) == ("http://127.0.0.1:8420", "secret")
    with pytest.raises(InputError, match=r"no server 'teem' \(did you mean team\?\)"):
        find_server("teem", tmp_path)
    monkeypatch.setenv("COTRAIL_TOKEN", "c")
    assert find_server("https://other.example.org", tmp_path).token == "c"
