"""Passwords and keys are planted wherever there may be any, what meets them fails, and all that comes is searched.

So are all answers of the service's routes.
"""

import gzip
import hashlib
import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any
from urllib.parse import quote

import httpx2
import psutil
import pytest
from msgspec import Struct

from cotrail.audit.bundles import read_bundle
from cotrail.workers.stack.stack import Stack
from tests.conftest import wait_until
from tests.faults.stacked import COTRAIL, ROOT, environment_of
from tests.integration.echoing import EchoingRedis
from tests.integration.flower_controls import fetch
from tests.integration.planted import KEY, PLANTED, World, forms, found, free_port, planted, protect

COMMANDS = (
    "runs --json",
    "show {run}",
    "trace {run} 1",
    "watch {run}",
    "audit verify {run}",
    "export {run} --output {folder}/export.jsonl",
    "audit export {run} --output {folder}/bundle.gz",
    "report {run} --html {folder}/report.html",
)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with planted() as made:
        yield made


def _all(holds: Callable[[str], bool], names: list[str]) -> bool:
    return all(map(holds, names))


@pytest.fixture(scope="module")
def runs(world: World) -> list[str]:
    """Runs whose steps met servers that say passwords and keys again, in bodies of every kind."""
    submitted = []
    for status, broken in ((401, False), (403, True), (400, False), (500, True)):
        world.echoing.status, world.echoing.broken = status, broken
        ours = [
            world.submit("one-step", "--corpus", "planted", "--model", "scripted"),
            world.submit("zero-shot", "--task", "commonsense", "--model", "served"),
        ]
        wait_until(partial(_all, world.ended, ours), f"both met {status}")
        submitted += ours
    return submitted


def test_the_servers_did_say_them_again(world: World, runs: list[str]) -> None:
    assert {KEY, PLANTED["search"], f"bob:{PLANTED['search']}"} <= world.echoing.forms
    assert {b64encode(f"bob:{PLANTED['search']}".encode()).decode()} <= world.echoing.forms


def test_no_table_has_a_secret(world: World, runs: list[str]) -> None:
    content = world.tables()
    assert b"[secret]" in content
    assert found(content) == set()


def test_no_command_nor_file_tells_a_secret(world: World, runs: list[str], tmp_path: Path) -> None:
    for command in COMMANDS:
        world.run(*command.format(run=runs[0], folder=tmp_path).split())
    world.run("show", runs[1])
    assert (tmp_path / "report.html").exists()
    assert found(b"".join(world.told)) == set()
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        assert found(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content) == set(), path


def test_flower_shows_no_secret(world: World) -> None:
    access = json.loads((world.home / "flower.json").read_text())
    credentials = f"{access['user']}:{access['password']}"
    names = list(json.loads(fetch(access["port"], "/api/workers?refresh=1", credentials)))
    assert names
    pages = [
        "/",
        "/workers",
        "/tasks",
        "/broker",
        "/api/workers",
        "/api/tasks",
        "/api/queues/length",
        "/metrics",
        "/none",
    ]
    for page in (*pages, *(f"/worker/{quote(name)}" for name in names)):
        content = fetch(access["port"], page, credentials)
        assert content, page
        assert found(content) == set(), page


def test_a_broker_that_takes_another_password_has_no_log_tell_it(world: World, runs: list[str]) -> None:
    told = len(world.logs())
    protect(world.broker_port, PLANTED["broker"], "another")
    try:
        wait_until(lambda: b"invalid username-password" in world.logs()[told:], "the password is refused")
        world.run("audit", "verify", runs[0])
    finally:
        protect(world.broker_port, "another", PLANTED["broker"])
    assert found(world.logs()) == set()


@pytest.mark.parametrize(
    "program",
    [
        "cotrail.cli.main watch {run}",
        "celery -A cotrail.workers.app inspect ping",
        "celery -A cotrail.workers.app worker -Q lookup -P threads -c 1 -n told@%h",
    ],
)
def test_a_broker_that_says_again_what_it_was_sent_has_nobody_tell_it(
    world: World, runs: list[str], program: str
) -> None:
    echoing = EchoingRedis()
    broker = {"COTRAIL_BROKER_URL": f"redis://:{quote(PLANTED['broker'], safe='')}@127.0.0.1:{echoing.port}/0"}
    environment = environment_of(world.home, {**world.variables, **broker})
    command = [sys.executable, "-m", *program.format(run=runs[0]).split()]
    with subprocess.Popen(command, env=environment, cwd=ROOT, stdout=PIPE, stderr=STDOUT) as process:
        try:
            wait_until(lambda: process.poll() is not None or PLANTED["broker"].encode() in echoing.said, "it was told")
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
        finally:
            process.kill()
            echoing.close()
        assert process.stdout is not None
        assert found(process.stdout.read()) == set()


def test_commands_that_can_not_reach_their_servers_tell_no_secret(world: World) -> None:
    gone = free_port()
    variables = {
        "COTRAIL_DATABASE_URL": f"postgresql://bob:{quote(PLANTED['database'], safe='')}@127.0.0.1:{gone}/trail",
        "COTRAIL_SEARCH_URL": f"http://bob:{quote(PLANTED['search'], safe='')}@127.0.0.1:{gone}",
    }
    for command in ("runs", "index {} --name c".format(world.home / "questions.jsonl"), "up"):
        done = world.run(*command.split(), variables=variables)
        assert done.returncode != 0, command
    assert found(b"".join(world.told)) == set()


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("COTRAIL_DATABASE_URL", f"postgresql://bob:{PLANTED['database']}@host:1/x"),
        ("COTRAIL_BROKER_URL", f"redis://:{PLANTED['broker']}@host:1/0"),
        ("COTRAIL_SEARCH_URL", f"http://bob:{PLANTED['search']}@host:1"),
    ],
    ids=["database", "broker", "search"],
)
@pytest.mark.parametrize(
    "program",
    [
        "cotrail.cli.main runs",
        "celery -A cotrail.workers.app inspect ping",
        pytest.param("cotrail.cli.main migrate", marks=pytest.mark.slow(group=6)),
    ],
)
def test_what_meets_a_malformed_address_names_the_variable_alone(
    world: World, program: str, name: str, url: str
) -> None:
    environment = environment_of(world.home, {**world.variables, name: url})
    command = [sys.executable, "-m", *program.split()]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, timeout=60)
    assert done.returncode != 0
    assert name.encode() in done.stderr + done.stdout
    assert found(done.stderr + done.stdout) == set()


# The service

DESCRIPTION = json.loads((ROOT / "docs" / "openapi.json").read_text())

STREAMS = "text/event-stream"
FAILING: tuple[dict[str, Any], ...] = (
    {"model": "served", "system": "zero-shot", "task": "commonsense"},
    {"model": "scripted", "system": "one-step", "corpus": "planted"},
)
"""What is asked for by runs whose servers refuse it."""


class Service(Struct):
    """The service of a stack, as an administrator asks it; told: each of its answers, by what was asked."""

    world: World
    client: httpx2.Client
    token: str
    told: list[tuple[str, bytes]]

    def ask(self, method: str, path: str, **sent: Any) -> httpx2.Response:
        answer = self.client.request(method, path, **sent)
        headers = "\n".join(f"{name}: {value}" for name, value in answer.headers.multi_items())
        self.told.append((f"{method} {path} {sent}", headers.encode() + answer.content))
        return answer

    def leaks(self, content: bytes) -> set[bytes]:
        """The secrets in it: those that were planted, and the token's."""
        return found(content) | {form for form in forms(self.token) if form in content}


@pytest.fixture(scope="module")
def service(world: World) -> Iterator[Service]:
    address = Stack(world.servers).address
    assert address is not None
    token = _token(world)
    with httpx2.Client(base_url=address.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        yield Service(world, client, token, [])


def _token(world: World) -> str:
    """The secret of a new token, which is told this once."""
    command = [*COTRAIL, "token", "create", "ours", "--scope", "admin", "--json"]
    done = subprocess.run(command, env=environment_of(world.home, world.variables), cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["secret"])


@pytest.fixture(scope="module")
def refused(service: Service) -> list[str]:
    """Runs that are blocked, as servers refused them and said again what they were sent."""
    content = (service.world.home / "questions.jsonl").read_bytes()
    file = f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert service.ask("PUT", f"/v1/files/{file}?name=questions.jsonl", content=content).status_code < 300
    made = []
    for failing in FAILING:
        run = service.ask("POST", "/v1/runs", json={"dataset": "jsonl", "questions": file, **failing})
        assert run.status_code == 201, run.text
        made.append(run.json()["runs"][0]["run"])
        wait_until(partial(service.world.ended, made[-1]), "its question is blocked")
    return made


@pytest.fixture(scope="module")
def told(service: Service, refused: list[str]) -> list[tuple[str, bytes]]:
    """All answers: of every route about what there is and what there isn't, then without a body and with bad ones."""
    for path in _paths("get"):
        for place in _places(path, refused):
            service.ask("GET", place)
            service.ask("GET", place, params={"limit": "many", "form": "jsonl"})
    for method in ("post", "put", "patch", "delete"):
        for path in _paths(method):
            for place in _places(path, refused):
                for body in ("{}", "{", '{"request": {"model": "served", "unknown": 1}}'):
                    service.ask(method.upper(), place, content=body, headers={"Content-Type": "application/json"})
    service.ask("POST", f"/v1/runs/{refused[0]}/cancel")
    service.ask("GET", f"/v1/runs/{refused[0]}/events")
    service.ask("GET", "/v1/runs", headers={"Authorization": f"Bearer {service.token[:-1]}"})
    return service.told


def _paths(method: str) -> list[str]:
    """The paths of the routes of this method that don't answer by a stream, which may have no end."""
    described = {path: methods[method] for path, methods in DESCRIPTION["paths"].items() if method in methods}
    return [path for path, route in described.items() if STREAMS not in json.dumps(route["responses"])]


def _places(path: str, runs: list[str]) -> list[str]:
    """The path for each of the runs, and for one that there isn't."""
    return sorted({_place(path, run) for run in (*runs, "nothing")})


def _place(path: str, run: str) -> str:
    named = {"run": run, "question": "q1", "step": "1", "system": "zero-shot", "model": "served", "corpus": "planted"}
    for name in [part[1:-1] for part in path.split("/") if part.startswith("{")]:
        path = path.replace(f"{{{name}}}", named.get(name, "nothing"))
    return path


def test_no_answer_tells_a_secret(service: Service, told: list[tuple[str, bytes]]) -> None:
    assert b"[secret]" in b"".join(content for _, content in told)
    assert {asked: leaked for asked, content in told if (leaked := service.leaks(content))} == {}


def test_a_bundle_holds_no_secret(service: Service, refused: list[str], tmp_path: Path) -> None:
    for run in refused:
        (tmp_path / "bundle.zst").write_bytes(service.client.get(f"/v1/runs/{run}/bundle").content)
        records = json.dumps([*read_bundle(tmp_path / "bundle.zst")], ensure_ascii=False, default=str)
        assert run in records
        assert service.leaks(records.encode()) == set()


def test_a_webhook_that_fails_leaves_no_secret(service: Service, refused: list[str]) -> None:
    def tried() -> bool:
        with service.world.connected() as connection:
            given = "SELECT 1 FROM webhook_deliveries WHERE problem IS NOT NULL"
            return connection.execute(given).fetchone() is not None

    wait_until(tried, "the endpoint was told, and refused it")
    assert service.leaks(service.world.tables()) == set()


def test_a_sign_in_that_fails_tells_nothing(service: Service) -> None:
    service.world.provider.echoes = True
    with httpx2.Client(base_url=service.client.base_url) as browser:
        begun = browser.get("/auth/sign-in")
        code, state = service.world.provider.authorize(begun.headers["Location"])
        back = browser.get("/auth/callback", params={"code": code, "state": state})
    assert back.status_code == 401, back.text
    wait_until(lambda: b"doesn't take a code" in service.world.logs(), "it is logged")
    for answer in (begun, back):
        assert service.leaks(f"{answer.headers}".encode() + answer.content) == set()


def test_the_token_is_stored_as_a_digest(service: Service, told: list[tuple[str, bytes]]) -> None:
    content = service.world.tables()
    assert hashlib.sha256(service.token.encode()).hexdigest().encode() in content
    assert service.leaks(content) == set()


def test_no_log_tells_a_secret(service: Service, told: list[tuple[str, bytes]]) -> None:
    lines = service.world.logs().splitlines()
    assert [line for line in lines if service.leaks(line)] == []


# In the end


def test_no_log_and_no_command_line_has_a_secret(world: World) -> None:
    assert found(world.logs()) == set()
    lines = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    assert found("\n".join(lines).encode()) == set()
