"""Passwords and keys are planted wherever there may be any, what meets them fails, and all that comes is searched."""

import gzip
import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from subprocess import PIPE, STDOUT
from urllib.parse import quote

import psutil
import pytest

from tests.conftest import wait_until
from tests.faults.stacked import ROOT, environment_of
from tests.integration.echoing import EchoingRedis
from tests.integration.flower_controls import fetch
from tests.integration.planted import KEY, PLANTED, World, found, free_port, planted, protect

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
    "program", ["cotrail.cli.main runs", "cotrail.cli.main migrate", "celery -A cotrail.workers.app inspect ping"]
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


def test_no_log_and_no_command_line_has_a_secret(world: World) -> None:
    assert found(world.logs()) == set()
    lines = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    assert found("\n".join(lines).encode()) == set()
