"""What `cotrail up` started is started again when it dies, whatever dies and however much of it at once."""

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from cotrail.configuration.settings import Settings
from cotrail.workers.stack.process import alive
from cotrail.workers.stack.stack import Stack
from cotrail.workers.stack.status import NAMES, SUPERVISORS, State, Status
from tests.conftest import wait_until
from tests.faults.stacked import COTRAIL, ROOT, Cotrail, environment_of, stacked
from tests.homes import SCRIPTED, answering, home_of

SERVICES = [name for name in NAMES if name not in SUPERVISORS]
EACH = ("postgres", "generation", "flower", *SUPERVISORS)
"""One of each sort; the others are killed with them at once."""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with home_of({"script.json": answering("A"), "models.toml": SCRIPTED}) as made:
        yield made


@pytest.fixture(scope="module")
def cotrail(home: Path) -> Iterator[Cotrail]:
    with stacked(home, supervised=True) as run:
        yield run


@pytest.fixture
def stack(home: Path, cotrail: Cotrail) -> Stack:
    """The stack, with everything running."""
    stack = Stack(Settings(home=home, database_url=None, broker_url=None))
    if not all(each.pid and each.works for each in stack.status()):
        cotrail("up", "--flower")
        (home / "run" / "evidence.wanted").touch()
        wait_until_all_works(stack)
    return stack


def show(home: Path) -> "subprocess.CompletedProcess[str]":
    """Runs `cotrail stack`."""
    return subprocess.run([*COTRAIL, "stack"], env=environment_of(home), cwd=ROOT, capture_output=True, text=True)


def status(stack: Stack, name: str) -> Status:
    return next(each for each in stack.status() if each.name == name)


def kill(stack: Stack, names: Iterable[str]) -> dict[str, int]:
    """Kills services at once; returns their former process ids."""
    found = {name: stack.find(name) for name in names}
    victims = {name: process for name, process in found.items() if process is not None}
    for victim in victims.values():
        victim.kill()
    wait_until(lambda: not any(map(alive, victims.values())), "they are dead")
    return {name: victim.pid for name, victim in victims.items()}


def wait_until_back(stack: Stack, killed: dict[str, int]) -> None:
    def back() -> bool:
        found = {name: stack.find(name) for name in killed}
        return all(process is not None and process.pid != killed[name] for name, process in found.items())

    wait_until(back, f"{', '.join(killed)} run again")


def wait_until_all_works(stack: Stack) -> None:
    wait_until(lambda: all(each.pid and each.works for each in stack.status()), "everything works")


def test_a_worker_that_few_need_is_started_once_a_step_needs_it(home: Path, cotrail: Cotrail) -> None:
    stack = Stack(Settings(home=home, database_url=None, broker_url=None))
    cotrail("up")
    assert (status(stack, "evidence").state, status(stack, "evidence").works) == (State.WAITING, True)
    assert "evidence      waiting" in show(home).stdout
    (home / "run" / "evidence.wanted").touch()
    wait_until(lambda: status(stack, "evidence").state is State.RUNNING, "it runs")
    wait_until_back(stack, kill(stack, ["evidence"]))
    cotrail("down")
    assert status(stack, "evidence").state is State.STOPPED
    cotrail("up")
    assert status(stack, "evidence").state is State.WAITING


def test_each_sort_of_them_comes_back_and_the_others_stay(stack: Stack) -> None:
    before = {each.name: each.restarts for each in stack.status()}
    for name in EACH:
        others = pids(stack, but=name)
        wait_until_back(stack, kill(stack, [name]))
        assert pids(stack, but=name) == others
    wait_until_all_works(stack)
    assert {each.name: each.restarts - before[each.name] for each in stack.status()} == {
        name: int(name in EACH) for name in NAMES
    }


def pids(stack: Stack, *, but: str = "") -> dict[str, int | None]:
    return {each.name: each.pid for each in stack.status() if each.name != but}


def test_all_services_at_once_come_back(stack: Stack) -> None:
    wait_until_back(stack, kill(stack, SERVICES))
    wait_until_all_works(stack)


def test_a_second_up_starts_only_the_supervisors_anew(cotrail: Cotrail, stack: Stack) -> None:
    before = pids(stack)
    cotrail("up")
    after = pids(stack)
    assert {name for name in NAMES if before[name] != after[name]} == set(SUPERVISORS)
    assert {each.restarts for each in stack.status()} == {0}


def test_what_cannot_be_started_is_tried_again_and_says_why(home: Path, stack: Stack) -> None:
    data, kept = home / "redis", home / "redis.kept"
    kill(stack, ["redis"])
    data.rename(kept)
    data.write_text("in its place")
    wait_until(lambda: "File exists" in (status(stack, "redis").ended or ""), "the reason is shown")
    shown = show(home)
    data.unlink()
    kept.rename(data)
    assert shown.returncode == 3
    assert "redis is dead" in shown.stdout
    assert "it is started again" in shown.stdout  # whether its pause is over yet depends on how fast this asks
    wait_until(lambda: status(stack, "redis").works, "Redis runs again")


def test_killed_with_its_supervisors_it_stays_dead_until_the_next_up(home: Path, stack: Stack) -> None:
    kill(stack, [*SUPERVISORS, *SERVICES])
    shown = show(home)
    assert shown.returncode == 3
    assert "`cotrail up` brings back what is dead" in shown.stdout
    assert {(each.state, each.restart_seconds) for each in stack.status()} == {(State.DIED, None)}


def test_down_in_the_middle_of_restarts_leaves_nothing(home: Path, cotrail: Cotrail, stack: Stack) -> None:
    killed = kill(stack, SERVICES)
    wait_until_back(stack, {"redis": killed["redis"]})
    cotrail("down")
    assert {each.state for each in stack.status()} == {State.STOPPED}
    assert not [process for process in psutil.process_iter() if works_in(process, home)]
    assert show(home).returncode == 0


def works_in(process: psutil.Process, home: Path) -> bool:
    with suppress(psutil.Error):
        return Path(process.cwd()).is_relative_to(home)
    return False
