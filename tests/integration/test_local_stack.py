"""The whole local stack as `cotrail up --flower` starts it: what others see of it, and what Flower may do."""

import json
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from redis import Redis

from cotrail.configuration.settings import Settings
from cotrail.core.actions.registry import KINDS
from cotrail.tasks.routing import SERIALIZER
from cotrail.workers.logs import KEPT_FILES, MOST_BYTES
from cotrail.workers.stack.status import NAMES
from tests.conftest import wait_until
from tests.faults.stacked import Cotrail, process, stacked
from tests.integration.flower_controls import ask, controls

FLOWERS = {"FLOWER_READ_ONLY": "false", "FLOWER_UNAUTHENTICATED_API": "true", "FLOWER_ADDRESS": "0.0.0.0"}
"""What a person may have in the environment for another Flower."""

WORKERS = ("generation", "retrieval", "evidence")


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cl-") as made:
        folder = Path(made) / "home"
        folder.mkdir()
        script = {"name": "writer", "questions": {}, "default": {"answer": "Marlow"}}
        (folder / "script.json").write_text(json.dumps(script))
        (folder / "models.toml").write_text('[models.scripted]\nengine = "scripted"\npath = "script.json"\n')
        (folder / "logs").mkdir(mode=0o755)
        for name in NAMES:  # as one left them that knew neither limits nor modes
            log = folder / "logs" / f"{name}.log"
            log.write_bytes(b"before\n" + bytes(MOST_BYTES if name in ("generation", "redis") else 0))
            log.chmod(0o644)
        yield folder


@pytest.fixture(scope="module")
def cotrail(home: Path) -> Iterator[Cotrail]:
    umask = os.umask(0o022)
    try:
        with stacked(home, FLOWERS, supervised=True) as run:
            yield run
    finally:
        os.umask(umask)


def services_of(cotrail: Cotrail) -> dict[str, Any]:
    """What `cotrail stack` says of each service."""
    return {each["name"]: each for each in json.loads(cotrail("stack", "--json"))["services"]}


@pytest.fixture(scope="module")
def flower(home: Path, cotrail: Cotrail) -> Any:
    """How to get to Flower, with everything running."""
    access = json.loads(cotrail("up", "--flower", "--json"))["flower"]
    (home / "run" / "evidence.wanted").touch()
    wait_until(lambda: services_of(cotrail)["evidence"]["state"] == "running", "the evidence worker is started")
    return access


@pytest.fixture
def port(flower: Any) -> int:
    return int(flower["url"].rstrip("/").rpartition(":")[2])


@pytest.fixture
def credentials(flower: Any) -> str:
    return f"{flower['user']}:{flower['password']}"


def is_private(path: Path) -> bool:
    return not stat.S_IMODE(path.lstat().st_mode) & 0o077


def shown_workers(home: Path) -> Any:
    """What each worker says of its queues and its pool."""
    from celery import Celery

    own = Settings(home=home, database_url=None, broker_url=None)
    with Celery(broker=own.broker) as asking:
        asking.conf.update(task_serializer=SERIALIZER, accept_content=[SERIALIZER])
        asking.conf.broker_transport_options = {"global_keyprefix": own.broker_prefix}
        inspect = asking.control.inspect(timeout=10, limit=len(WORKERS))
        queues, stats = inspect.active_queues(), inspect.stats()
    assert queues is not None
    assert stats is not None
    return {
        name: ({queue["name"] for queue in queues[name]}, stats[name]["pool"]["max-concurrency"]) for name in queues
    }


def test_flower_can_only_look(home: Path, cotrail: Cotrail, port: int, credentials: str) -> None:
    processes = [process(cotrail, name) for name in WORKERS]
    before = shown_workers(home)
    assert len(before) == len(WORKERS)
    wait_until(lambda: ask(port, "GET", "/api/workers?refresh=1", credentials) == 200)
    tried = [control for name in before for control in controls(name)]
    assert sum(control.serves for control in tried) > 30
    for control in tried:
        assert ask(port, control.method, control.path, credentials) == (403 if control.serves else 405), control
    assert shown_workers(home) == before
    assert all(each.is_running() for each in processes)
    with Redis(unix_socket_path=str(Settings(home=home).socket_path / "redis.sock")) as broker:
        assert [kind for kind in KINDS if broker.exists(f"cotrail:{kind}")] == []


def test_flower_shows_nothing_to_whom_it_does_not_know(port: int, credentials: str) -> None:
    user, _, _ = credentials.partition(":")
    for path in ("/", "/workers", "/tasks", "/broker", "/api/workers", "/api/tasks", "/api/task/types"):
        assert ask(port, "GET", path, credentials) == 200, path
        assert ask(port, "GET", path) == ask(port, "GET", path, f"{user}:wrong") == 401, path
    for control in controls("retrieval@nowhere"):
        assert ask(port, control.method, control.path) in (401, 405), control
        if control.method in ("POST", "PUT", "PATCH", "DELETE"):
            assert ask(port, control.method, control.path, credentials, Sec_Fetch_Site="cross-site") in (403, 405)


def test_flower_listens_on_loopback_alone(cotrail: Cotrail, flower: Any) -> None:
    connections = process(cotrail, "flower").net_connections("inet")
    assert [each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN] == ["127.0.0.1"]


def test_nobody_else_can_read_what_the_stack_writes(home: Path, flower: Any) -> None:
    folders = [home / name for name in ("logs", "run", "redis")] + [(home / "postgres").resolve()]
    folders += [*(home / "work").iterdir(), Settings(home=home).socket_path]
    assert [folder for folder in folders if not is_private(folder)] == []
    assert [file for file in [*(home / "logs").iterdir(), home / "flower.json"] if not is_private(file)] == []


def test_processes_make_files_for_their_owner_only(cotrail: Cotrail, flower: Any) -> None:
    for name in ("redis", *WORKERS, "maintenance", "flower"):
        said = Path(f"/proc/{process(cotrail, name).pid}/status").read_text()
        assert "Umask:\t0077" in said, name


def test_a_log_that_is_too_long_is_begun_anew_as_its_service_starts(home: Path, flower: Any) -> None:
    for name in ("generation", "redis"):
        assert (home / "logs" / f"{name}.log.1").read_bytes().startswith(b"before\n\0")
        assert (home / "logs" / f"{name}.log").stat().st_size < MOST_BYTES
    assert (home / "logs" / "maintenance.log").read_bytes().startswith(b"before\n")


def test_logs_that_grow_too_long_are_begun_anew_while_their_services_run(
    home: Path, cotrail: Cotrail, flower: Any
) -> None:
    before = services_of(cotrail)
    logs = {name: home / "logs" / f"{name}.log" for name in NAMES}
    for number in range(KEPT_FILES + 2):
        for log in logs.values():
            with log.open("ab") as file:
                file.write(b"\n%d" % number * MOST_BYTES)
        wait_until(lambda: all(map(is_short, logs.values())), "the logs are short", 20)
    former = {f"{name}.log.{number}" for name in NAMES for number in range(1, KEPT_FILES + 1)}
    wait_until(lambda: {each.name for each in (home / "logs").glob("*.log.*")} == former, "two of each are kept", 20)
    for name, service in services_of(cotrail).items():
        assert service["pid"] == before[name]["pid"]
        assert service["log"] == str(logs[name])
        outputs = {os.path.realpath(f"/proc/{service['pid']}/fd/{number}") for number in (1, 2)}
        assert outputs == {str(logs[name])}


def is_short(log: Path) -> bool:
    """Whether it has been begun anew; just then there may be none."""
    try:
        return log.stat().st_size < MOST_BYTES
    except FileNotFoundError:
        return False


def test_what_a_service_says_next_is_in_the_log_that_is_shown(home: Path, cotrail: Cotrail, flower: Any) -> None:
    log = home / "logs" / "retrieval.log"
    with log.open("ab") as file:
        file.write(b"\n" * (MOST_BYTES + 1))
    wait_until(lambda: is_short(log), "the log is short")
    psutil.Process(process(cotrail, "retrieval").pid).terminate()
    wait_until(lambda: b"shutdown" in log.read_bytes(), "the worker says that it ends")
    cotrail("up")
