"""The clients: written from the operations, and asking again where that is safe. And servers by their names."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import packages_distributions, requires
from itertools import chain
from pathlib import Path
from threading import Event, Semaphore, Thread
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tenacity import wait_none

from building.clients import FOLDER, Writing, sources, write
from cotrail.client import AsyncClient, Client
from cotrail.client.groups import Runs
from cotrail.client.transport import RemoteTransport
from cotrail.configuration.files import find_server
from cotrail.errors import InputError, UnavailableError, UnknownNameError

ROOT = Path(__file__).parents[2]
MOST_MODULES = 40
"""The most modules of cotrail that a client loads."""
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

    do_POST = do_PUT = do_GET  # noqa: N815

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


def test_what_is_written_from_the_operations_is_as_they_are() -> None:
    for name, source in sources().items():
        assert (FOLDER / name).read_text("utf-8") == source, "run `make clients`: operations have changed"


def test_only_what_is_not_as_it_is_to_be_is_written(tmp_path: Path) -> None:
    write(tmp_path)
    records, groups = tmp_path / "records.py", tmp_path / "groups.py"
    os.utime(records, (0, 0))
    groups.write_text("old")
    write(tmp_path)
    assert records.stat().st_mtime == 0
    assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} == sources()


def test_types_are_imported_from_where_every_python_has_them() -> None:
    writing = Writing()
    assert writing.written(type("Path", (), {"__module__": "pathlib._local"})) == "Path"
    assert "from pathlib import Path\n" in writing.module("", ())


def test_a_client_that_is_not_written_says_how_it_is(tmp_path: Path) -> None:
    for name in ("__init__.py", "errors.py", "client/__init__.py"):
        (tmp_path / "cotrail" / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "cotrail" / name, tmp_path / "cotrail" / name)
    command = [sys.executable, "-c", "from cotrail.client.records import RunRequest"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "NotInstalledError: modules of cotrail's client aren't written yet: " in done.stderr
    assert "run `python -m building.clients`" in done.stderr


def test_what_changes_nothing_is_asked_again(server: Answering) -> None:
    server.ready = [(0, b""), (503, problem("unavailable")), (429, problem("too-many-requests")), (200, PAGE)]
    door = RemoteTransport(server.url, pause=0)
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


class Streaming(Answering):
    """Its streams say nothing until they are to end."""

    def __init__(self) -> None:
        super().__init__()
        self.RequestHandlerClass = StreamHandler
        self.quiet = Semaphore(0)
        self.over = Event()


class StreamHandler(Handler):
    server: Streaming

    def do_GET(self) -> None:
        if not self.path.endswith("/events"):
            super().do_GET()
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b": nothing yet\n\n")
        self.wfile.flush()
        self.server.quiet.release()
        self.server.over.wait(60)
        self.wfile.write(b'id: 7\nretry: 1\ndata: {"event":"end","id":"7","state":"finished"}\n\n')


@pytest.fixture
def streaming() -> Iterator[Streaming]:
    with Streaming() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


def test_fifty_quiet_streams_leave_room_for_a_request(streaming: Streaming) -> None:
    streaming.ready = [(200, PAGE)]

    async def all_of_them() -> list[list[object]]:
        async with AsyncClient(streaming.url) as client:

            async def follow(number: int) -> list[object]:
                return [event async for event in client.live.run_events(f"run-{number}")]

            following = [asyncio.create_task(follow(number)) for number in range(50)]
            for _ in following:
                assert await asyncio.to_thread(streaming.quiet.acquire, timeout=60)
            assert (await asyncio.wait_for(client.runs.index(), 60)).more == 0
            assert not any(task.done() for task in following)
            streaming.over.set()
            return await asyncio.gather(*following)

    assert [len(events) for events in asyncio.run(all_of_them())] == [1] * 50


ONLY = """
import json, sys

away = json.loads(sys.argv[1])

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in away:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Nothing())
"""

ALONE = """
import asyncio

from cotrail.client import AsyncClient, Client
from cotrail.client.records import Ended, RunRequest, SubmittedRun

url, file = sys.argv[2:]
with Client(url) as client:
    submitted = client.runs.submit(RunRequest(system="ircot", dataset="jsonl", questions=file))
    assert submitted.runs == (SubmittedRun(run="a", questions=2, plan="p"),)
    assert [type(event) for event in client.live.run_events("a")] == [Ended]

async def follow():
    async with AsyncClient(url) as client:
        return [(await client.runs.index()).more, *[event.state async for event in client.live.run_events("a")]]

assert asyncio.run(follow()) == [0, "finished"]
print(*(name for name in sys.modules if name.startswith("cotrail.")))
"""


def alone(code: str, needed: Iterable[str], *arguments: str) -> str:
    """What the code prints where nothing is installed but what these requirements bring."""
    there = {"cotrail", *distributions(needed)}
    away = [name for name, by in packages_distributions().items() if not there & set(map(canonicalize_name, by))]
    command = [sys.executable, "-c", ONLY + code, json.dumps(away), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def distributions(requirements: Iterable[str]) -> set[str]:
    """Those that are required, and those that they need."""
    found: set[tuple[str, str]] = set()
    waiting = [each for each in map(Requirement, requirements) if _holds(each)]
    while waiting:
        of = waiting.pop()
        for extra in {"", *of.extras} - {extra for name, extra in found if name == of.name}:
            found.add((of.name, extra))
            waiting += [each for each in map(Requirement, requires(of.name) or ()) if _holds(each, extra)]
    return {canonicalize_name(name) for name, _ in found}


def _holds(requirement: Requirement, extra: str = "") -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def test_clients_need_their_extra_and_neither_database_nor_broker(streaming: Streaming, tmp_path: Path) -> None:
    marked = [each for each in map(Requirement, requires("cotrail") or ()) if each.marker]
    extra = [each.name for each in marked if _holds(each, "client") and not _holds(each)]
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"id": "q"}\n')
    answer = {"runs": [{"run": "a", "questions": 2, "plan": "p"}]}
    streaming.ready = [(404, problem("unknown-name")), (201, b"{}"), (200, json.dumps(answer).encode()), (200, PAGE)]
    streaming.over.set()
    loaded = alone(ALONE, ["msgspec", "tenacity", *extra], streaming.url, str(questions)).split()
    assert len(loaded) <= MOST_MODULES, loaded
    assert [method for method, _, _ in streaming.asked] == ["GET", "PUT", "POST", "GET"]


def test_a_build_requires_what_operations_import_and_as_cotrail_does() -> None:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    required, project = document["build-system"]["requires"], document["project"]
    code = "from building.clients import sources\nprint(*sources())"
    assert alone(code, required) == "records.py groups.py\n"
    assert set(required) <= {*project["dependencies"], *chain(*project["optional-dependencies"].values())}


def test_an_asynchronous_client_asks_again_and_raises_what_the_server_says(server: Answering) -> None:
    async def ask() -> int:
        async with AsyncClient(server.url) as client:
            client._transport._again.wait = wait_none()
            return (await client.runs.index()).more

    server.ready = [(0, b""), (503, problem("unavailable")), (200, PAGE)]
    assert asyncio.run(ask()) == 0
    server.ready = [(404, problem("unknown-name"))]
    with pytest.raises(UnknownNameError, match="so it is"):
        asyncio.run(ask())


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
