"""`cotrail workers`: who is found, with real workers of two hosts' names, and without Redis."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from celery import Celery
from sqlalchemy import Engine

from cotrail.configuration.settings import Settings, settings
from cotrail.core.binding import Binding
from cotrail.errors import InputError
from cotrail.models.execution.ledger import Ledger
from cotrail.services.runs.checking import check_worker_keys
from cotrail.systems.registry import find_system
from cotrail.tasks.broker_health import call
from cotrail.workers.celery_app import app
from cotrail.workers.transport import Amqp
from tests.conftest import wait_until
from tests.integration.stepping import LEASE, begin

COTRAIL = Path(sys.executable).parent / "cotrail"
ELSEWHERE = "gpu-3:77:abc"
STARTED = {
    "first": ("worker", "retrieval", "--name", "first", "--slots", "3"),
    "second": ("worker", "evidence", "--name", "second"),
    "active": ("worker", "maintenance"),
    "standing by": ("worker", "maintenance"),
}

Listed = Callable[..., dict[str, Any]]


@pytest.fixture
def variables(engine: Engine, servers: Settings) -> dict[str, str]:
    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    return {"COTRAIL_DATABASE_URL": url, "COTRAIL_BROKER_URL": servers.broker, "COTRAIL_SWEEP_SECONDS": "0.2"}


@pytest.fixture
def started(variables: dict[str, str], tmp_path: Path) -> Iterator[dict[str, psutil.Popen]]:
    """Real processes, started in a folder whose modules nobody may import."""
    for name in ("models", "tasks", "services", "cli", "workers", "celery"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('somebody else')\n")
    processes = {}
    for name, arguments in STARTED.items():
        ready = {"COTRAIL_READY_FILE": str(tmp_path / f"{name}.ready"), "COTRAIL_HOME": str(tmp_path)}
        with (tmp_path / f"{name}.log").open("wb") as log:
            environment = {**os.environ, **variables, **ready}
            command = [str(COTRAIL), *arguments]
            processes[name] = psutil.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    try:
        wait_until(lambda: all((tmp_path / f"{name}.ready").exists() for name in STARTED), "all are ready", 120)
        yield processes
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


@pytest.fixture
def listed(variables: dict[str, str], tmp_path: Path) -> Listed:
    def listed(code: int = 0, **changes: str) -> dict[str, Any]:
        environment = {**os.environ, **variables, **changes, "COTRAIL_HOME": str(tmp_path)}
        command = [str(COTRAIL), "workers", "--json"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, cwd=tmp_path)
        assert done.returncode == code, done
        return json.loads(done.stdout)  # type: ignore[no-any-return]

    return listed


def hold(engine: Engine, worker: str, run: str) -> None:
    """Has a worker hold the first step of a run, as after its claim."""
    (claim,) = Ledger(engine, worker, 600 * LEASE, find_system).claim(begin(engine, 1, id=run))
    assert claim is not None


def test_workers_of_all_hosts_are_listed_with_what_they_do(
    engine: Engine, started: dict[str, psutil.Popen], servers: Settings, listed: Listed
) -> None:
    host = socket.gethostname()
    present = {each.name: each for each in call(app_of(servers), servers.broker).present}
    assert (present["first"].slots, present["first"].pid) == (3, started["first"].pid)
    # Maintenance would admit these questions itself, and send their steps to the worker that is there.
    maintaining = started["active"], started["standing by"]
    for process in maintaining:
        process.suspend()
    hold(engine, present["first"].worker, "held here")
    hold(engine, ELSEWHERE, "held elsewhere")
    for process in maintaining:
        process.resume()

    found = listed()
    assert found["unasked"] is None
    rows = {(each["host"], each["pid"]): each for each in found["workers"]}
    states = {each["state"] for each in rows.values() if each["role"] == "maintenance"}
    assert states == {"active", "standing_by"}
    first, second = (rows[host, started[name].pid] for name in ("first", "second"))
    assert (first["role"], first["state"]) == ("retrieval", "working")
    assert (second["role"], second["state"], second["steps"]) == ("evidence", "idle", [])
    (step,) = first["steps"]
    assert (step["run"], step["question"], step["kind"]) == ("held here", "q0", "retrieve")
    silent = rows["gpu-3", 77]
    assert (silent["state"], silent["steps"][0]["run"]) == ("silent", "held elsewhere")

    started["first"].send_signal(signal.SIGSTOP)
    rows = {(each["host"], each["pid"]): each for each in listed()["workers"]}
    assert rows[host, started["first"].pid]["state"] == "silent"


@pytest.fixture
def key_holders(variables: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Starts generation workers, each with a key of this kind or without one."""
    processes: list[psutil.Popen] = []

    def start(name: str, **keys: str) -> None:
        ready = {"COTRAIL_READY_FILE": str(tmp_path / f"{name}.ready"), "COTRAIL_HOME": str(tmp_path)}
        with (tmp_path / f"{name}.log").open("wb") as log:
            environment = {**os.environ, **variables, **ready, **keys}
            command = [str(COTRAIL), "worker", "generation", "--name", name]
            processes.append(psutil.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log))
        wait_until((tmp_path / f"{name}.ready").exists, f"{name} is ready", 120)

    yield start
    for process in processes:
        process.kill()
        process.wait()


MODEL = """
[models.m]
engine = "openai"
url = "https://localhost/v1"
model = "m"
context = 99
key_variable = "A_TEST_KEY"
"""


def test_workers_say_which_keys_they_have_and_never_what_they_hold(
    variables: dict[str, str],
    servers: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    key_holders: Callable[..., None],
) -> None:
    for name, value in {**variables, "COTRAIL_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    settings.cache_clear()
    (tmp_path / "models.toml").write_text(MODEL)
    asking = app_of(servers)
    pinned = Binding(model="m@0", profile="fast", temperature=0, seed=0)
    (tmp_path / "q.jsonl").write_text('{"id": "1", "question": "Who?", "answers": ["x"]}\n')

    def submit() -> "subprocess.CompletedProcess[str]":
        line = [str(COTRAIL), "submit", "--system", "no-retrieval", "--dataset", "jsonl", "--model", "m"]
        return subprocess.run(
            [*line, "--questions", tmp_path / "q.jsonl"], capture_output=True, text=True, cwd=tmp_path
        )

    done = submit()
    assert (done.returncode, "no worker that generates answers" in done.stderr) == (0, True), done.stderr
    key_holders("keyless")
    done = submit()
    assert (done.returncode, done.stdout, "A_TEST_KEY" in done.stderr) == (2, "", True), done.stderr
    with pytest.raises(InputError, match="A_TEST_KEY, which holds the key of a model, isn't set in any worker"):
        check_worker_keys(lambda: asking, pinned)
    key_holders("keyed", A_TEST_KEY="sentinel-key-0123456789")
    assert "isn't set in 1 of 2 workers" in check_worker_keys(lambda: asking, pinned)[0]
    answered = call(asking, servers.broker, ("A_TEST_KEY", "ANOTHER"))
    assert {each.name: each.variables for each in answered.present} == {"keyless": (), "keyed": ("A_TEST_KEY",)}
    assert "sentinel" not in repr(answered)
    assert check_worker_keys(lambda: asking, Binding(model="smollm2-135m@0", profile="", temperature=0, seed=0)) == ()


def test_without_redis_those_that_hold_steps_are_listed_and_that_is_said(
    engine: Engine, listed: Listed, variables: dict[str, str]
) -> None:
    hold(engine, ELSEWHERE, "held elsewhere")
    found = listed(3, COTRAIL_BROKER_URL="redis://:hidden@127.0.0.1:1/0")
    assert "refused" in found["unasked"].lower()
    assert "hidden" not in found["unasked"]
    assert [(each["host"], each["pid"], each["state"]) for each in found["workers"]] == [("gpu-3", 77, "working")]


def app_of(servers: Settings) -> Celery:
    """An app that asks on the broker of the tests."""
    asking = Celery("asking", broker=servers.broker, amqp=Amqp, set_as_current=False)
    for name in ("broker_transport_options", "task_serializer", "accept_content"):
        asking.conf[name] = app.conf[name]
    return asking
