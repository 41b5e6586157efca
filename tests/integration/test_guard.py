"""What exists and doesn't work is ended and started again, whatever of the stack it is."""

import json
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from cotrail.configuration.settings import Settings
from cotrail.workers.stack.process import alive
from cotrail.workers.stack.stack import Stack
from cotrail.workers.stack.status import NAMES, SUPERVISORS, State, Status
from cotrail.workers.stack.supervisor import LONGEST_GAP, PATIENCE_SECONDS, Guard, Supervisor
from tests.conftest import wait_until
from tests.faults.stacked import Cotrail, stacked

SERVICES = [name for name in NAMES if name not in SUPERVISORS]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cg-") as made:
        home = Path(made)
        (home / "script.json").write_text(json.dumps({"name": "writer", "questions": {}, "default": {"answer": "A"}}))
        (home / "models.toml").write_text('[models.scripted]\nengine = "scripted"\npath = "script.json"\n')
        yield home


@pytest.fixture(scope="module")
def cotrail(home: Path) -> Iterator[Cotrail]:
    with stacked(home) as run:
        run("up", "--flower")
        yield run


@pytest.fixture
def stack(home: Path, cotrail: Cotrail) -> Stack:
    """The stack, of which everything but supervisors runs: those are the tests themselves."""
    return Stack(Settings(home=home, database_url=None, broker_url=None))


def status(stack: Stack, name: str) -> Status:
    return next(each for each in stack.status() if each.name == name)


def freeze(stack: Stack, name: str) -> psutil.Process:
    process = stack.find(name)
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: process.status() == psutil.STATUS_STOPPED, "it is frozen")
    return process


def supervisor(stack: Stack, patience: float = 0.0) -> Supervisor:
    return Supervisor(stack, SUPERVISORS[0], Guard(stack, patience=patience, pause=0.0))


@pytest.mark.parametrize("name", SERVICES)
def test_a_frozen_one_is_ended_and_started_again_and_the_others_stay(name: str, stack: Stack) -> None:
    before = {each.name: each.pid for each in stack.status()}
    frozen = freeze(stack, name)
    assert "SIGSTOP" in (status(stack, name).problem or "")
    active = supervisor(stack)

    def works_again() -> bool:
        active.look()
        return not alive(frozen) and status(stack, name).works

    wait_until(works_again, f"{name} works again")
    assert "didn't work" in (stack.restarts[name].reason or "")
    after = {each.name: each.pid for each in stack.status()}
    assert {each for each in NAMES if before[each] != after[each]} == {name}


def test_one_that_is_slow_for_a_while_is_left_alone(stack: Stack) -> None:
    process = freeze(stack, "maintenance")
    guard = Guard(stack, patience=PATIENCE_SECONDS, pause=0.0)
    for _ in range(10):
        assert guard.end_frozen(NAMES) == {}
    process.send_signal(signal.SIGCONT)
    wait_until(lambda: stack.frozen("maintenance") is None, "it works")
    assert guard.end_frozen(NAMES) == {}


def test_seconds_in_which_the_guard_was_frozen_itself_do_not_count(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("cotrail.workers.stack.supervisor.time.monotonic", lambda: now)
    process = freeze(stack, "maintenance")
    guard = Guard(stack)
    try:
        for passed in (LONGEST_GAP, 9 * PATIENCE_SECONDS, LONGEST_GAP):
            now += passed
            assert guard.end_frozen(["maintenance"]) == {}
    finally:
        process.send_signal(signal.SIGCONT)
    wait_until(lambda: status(stack, "maintenance").works, "it works")


def test_one_that_has_not_begun_yet_is_starting_however_long_it_takes(home: Path, stack: Stack) -> None:
    process = stack.find("generation")
    assert process is not None
    report = home / "run" / "generation.ready"
    process.send_signal(signal.SIGSTOP)
    report.unlink()
    process.send_signal(signal.SIGCONT)
    assert stack.frozen("generation") is None
    wait_until(lambda: status(stack, "generation").state is State.RUNNING, "it reports again")
