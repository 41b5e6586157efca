"""Stacks that start where it is slow or crowded: all come up, each with ports of its own."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx2
import psutil
import pytest

from cotrail.configuration.settings import Settings
from cotrail.configuration.variables import STACK_HEADER
from cotrail.workers.stack.stack import Stack
from cotrail.workers.stack.status import State
from cotrail.workers.stack.web import read_access, read_address
from tests.clusters import lay_cluster
from tests.faults.stacked import ROOT, Cotrail, environment_of, stacked
from tests.homes import SCRIPTED, answering, home_of

TEN_TIMES = """
import atexit, signal, time

atexit.register(signal.setitimer, signal.ITIMER_PROF, 0)
signal.signal(signal.SIGPROF, lambda *_: time.sleep(0.09))
signal.setitimer(signal.ITIMER_PROF, 0.01, 0.01)
"""
"""A `sitecustomize.py`: after each hundredth of a second that a process has computed, it does nothing for nine."""


EVERY_SECOND = """
from cotrail.cli.terminal import diagnosis
diagnosis.LINE_SECONDS = 1
from cotrail.cli.main import main
main()
"""
"""The command line, which says each second what it waits for: a fast machine starts ten times slower within 30."""


def works(home: Path) -> bool:
    """Whether all of a stack that was started works."""
    stack = Stack(Settings(home=home, database_url=None, broker_url=None))
    return all(each.works for each in stack.status() if each.state is not State.STOPPED)


def working_in(process: psutil.Process, folder: Path) -> bool:
    with suppress(psutil.Error):
        return process.cwd() == str(folder)
    return False


@pytest.fixture
def new_stack() -> Iterator[Callable[..., tuple[Path, Cotrail]]]:
    with ExitStack() as opened:

        def make(**variables: str) -> tuple[Path, Cotrail]:
            home = opened.enter_context(home_of({"models.toml": SCRIPTED, "script.json": answering("Marlow")}))
            return home, opened.enter_context(stacked(home, variables, supervised=True))

        yield make


@pytest.mark.slow(group=2)
@pytest.mark.timeout(1800)
def test_stacks_that_start_together_all_come_up_with_ports_of_their_own(
    new_stack: Callable[..., tuple[Path, Cotrail]],
) -> None:
    together = [new_stack() for _ in range(8)]
    with ThreadPoolExecutor(len(together)) as threads:
        list(threads.map(lambda each: each[1]("up", "--flower"), together))
    ports = set()
    for home, _ in together:
        assert works(home)
        service, access = read_address(home / "api.json"), read_access(home / "flower.json")
        assert service is not None
        assert access is not None
        ports |= {service.port, access.port}
        said = httpx2.get(f"{service.url}/ready", timeout=60).raise_for_status()
        assert said.headers[STACK_HEADER] == service.stack
    assert len(ports) == 2 * len(together)


@pytest.mark.slow(group=4)
@pytest.mark.timeout(1800)
def test_twenty_commands_that_start_one_stack_at_once_start_one(new_stack: Callable[..., tuple[Path, Cotrail]]) -> None:
    home, cotrail = new_stack()
    lay_cluster(home)
    with ThreadPoolExecutor(20) as threads:
        list(threads.map(lambda _: cotrail("up"), range(20)))
    assert works(home)
    workers = [each for each in psutil.process_iter() if working_in(each, home / "work" / "generation")]
    assert len(workers) == 1


@pytest.mark.slow(group=6)
@pytest.mark.timeout(1800)
def test_a_stack_whose_processes_take_ten_times_as_long_comes_up_and_shows_what_it_waits_for(
    new_stack: Callable[..., tuple[Path, Cotrail]], tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(TEN_TIMES)
    home, _ = new_stack(PYTHONPATH=str(tmp_path))
    environment = environment_of(home, {"PYTHONPATH": str(tmp_path)})
    command = [sys.executable, "-c", EVERY_SECOND, "up"]
    up = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert up.returncode == 0, up.stderr
    assert " is starting, for " in up.stderr
    assert works(home)
