"""Beside another application, whose variables for Celery and libpq are in the environment, cotrail keeps to its own."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cotrail.configuration.settings import Settings
from cotrail.workers.health import VARIABLE
from cotrail.workers.stack.stack import Stack
from tests.conftest import wait_until
from tests.faults.stacked import COTRAIL, ROOT, SAMPLE, environment_of, stacked
from tests.homes import SCRIPTED, answering, home_of

NOWHERE = "redis://127.0.0.1:1/0"
"""A broker that nobody reaches."""

FOREIGN = {
    "BROKER_URL": NOWHERE,
    "CELERY_BROKER_URL": NOWHERE,
    "CELERY_BROKER_READ_URL": NOWHERE,
    "CELERY_BROKER_WRITE_URL": NOWHERE,
    "CELERY_RESULT_BACKEND": NOWHERE,
    "RESULT_BACKEND": NOWHERE,
    "APP": "another.project",
    "CELERY_APP": "another.project",
    "LOADER": "another.project:Loader",
    "CELERY_LOADER": "another.project:Loader",
    "CONFIG_MODULE": "another.celeryconfig",
    "CELERY_CONFIG_MODULE": "another.celeryconfig",
    "CELERY_WORKER_QUEUES": "another",
    "CELERY_WORKER_POOL": "another",
    "CELERY_WORKER_CONCURRENCY": "none",
}
LIBPQ = {
    "PGHOSTADDR": "127.0.0.2",
    "PGOPTIONS": "-c statement_timeout=1",
    "PGSERVICE": "another",
    "PGTARGETSESSIONATTRS": "standby",
}
AT_IMPORT = {"CELERY_WORKER_REVOKES_MAX": "many", "C_STRICT_APP": "1", "FORKED_BY_MULTIPROCESSING": "1"}
"""What Celery reads as it is imported, and so before cotrail where somebody starts Celery's own command."""

LEFT_ALONE = {"DJANGO_SETTINGS_MODULE": "another.settings"}


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with home_of({"script.json": answering("A"), "models.toml": SCRIPTED}) as made:
        yield made


@pytest.fixture(scope="module")
def environment(home: Path) -> Iterator[dict[str, str]]:
    """That of commands beside the other application; what they start is ended at the end."""
    with stacked(home):
        yield environment_of(home, FOREIGN | LIBPQ | AT_IMPORT | LEFT_ALONE)


def run(environment: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run([*COTRAIL, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def said(environment: dict[str, str]) -> str:
    """What `cotrail up --flower` says on standard error."""
    return run(environment | {"FLOWER_ADDRESS": "0.0.0.0"}, "up", "--flower").stderr


def test_the_command_that_starts_the_stack_says_what_it_leaves_out(said: str) -> None:
    assert len(said.splitlines()) == 3
    assert "FLOWER_ADDRESS" in said
    for name in FOREIGN | LIBPQ | AT_IMPORT:
        assert re.search(rf"[ (]{name}[,) ]", said), name
    assert NOWHERE not in said


def test_the_stack_works_with_its_own_redis(environment: dict[str, str], said: str) -> None:
    run(environment, "index", str(SAMPLE / "corpus.jsonl"), "--name", "sample")
    asked = ["--dataset", "jsonl", "--questions", str(SAMPLE / "questions.jsonl"), "--corpus", "sample"]
    done = run(environment, "submit", "--system", "ircot", *asked, "--limit", "2", "--wait", "--json")
    assert json.loads(done.stdout.splitlines()[-1])["finished"] == 2


@pytest.mark.parametrize("role", ["retrieval", "maintenance"])
def test_a_worker_started_by_hand_says_what_it_leaves_out_and_works(
    role: str, tmp_path: Path, environment: dict[str, str], said: str
) -> None:
    command = [*COTRAIL, "worker", role, *(["--name", "by-hand"] if role != "maintenance" else [])]
    works_beside_the_others(command, environment, tmp_path)


def test_a_worker_that_celerys_own_command_starts_does_so_too(
    home: Path, tmp_path: Path, environment: dict[str, str], said: str
) -> None:
    options = ["-Q", "retrieve", "-P", "threads", "-c", "1", "-n", "direct@%h", "--without-gossip", "--without-mingle"]
    command = [sys.executable, "-m", "celery", "-A", "cotrail.workers.app", "worker", *options]
    without = {name: value for name, value in environment.items() if name not in AT_IMPORT}
    works_beside_the_others(command, without, tmp_path)
    assert all(each.works for each in Stack(Settings(home=home)).status() if each.pid)


def works_beside_the_others(command: list[str], environment: dict[str, str], folder: Path) -> None:
    """Starts a process, which must be ready, and so have reached the stack's own Redis, and name a foreign variable."""
    ready, log = folder / "ready", folder / "log"
    own = environment | {VARIABLE: str(ready)}
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=own, cwd=ROOT, stdout=file, stderr=file, start_new_session=True)
    try:
        wait_until(lambda: ready.exists() or process.poll() is not None, "it is ready")
        assert ready.exists(), log.read_text()
    finally:
        process.terminate()
        process.wait(60)
    warnings = [line for line in log.read_text().splitlines() if "CELERY_BROKER_URL" in line]
    assert len(warnings) == 1
    assert NOWHERE not in log.read_text()
    assert os.environ.get("CELERY_BROKER_URL") is None
