"""`kill -9` of the service over HTTP and of PostgreSQL in turn, as long as programs ask it."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

from cotrail.workers.stack.process import Processes
from tests.conftest import wait_until
from tests.faults.stacked import Cotrail

VICTIMS = (("api",), ("postgres",), ("api", "postgres"))
"""What is killed at a time."""

LOOK_SECONDS = 0.05


@contextmanager
def outages(home: Path, cotrail: Cotrail, answered: Callable[[], int], longest_pause: float) -> Iterator[Counter[str]]:
    """Kill as long as the block goes on, and start again what was killed; gives the kills by victim.

    answered: how much has come of all requests. Nothing is killed before more has since the last kill: otherwise a slow
    machine would come to nothing. longest_pause: the most seconds between that and the next kill.
    """
    kills: Counter[str] = Counter()
    over = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        killing = threads.submit(_kill, home, cotrail, answered, longest_pause, over, kills)
        try:
            yield kills
        finally:
            over.set()
        killing.result()


def _kill(
    home: Path,
    cotrail: Cotrail,
    answered: Callable[[], int],
    longest_pause: float,
    over: threading.Event,
    kills: Counter[str],
) -> None:
    before, pauses = answered(), random.Random()  # of its own: Hypothesis watches the common one
    for names in cycle(VICTIMS):
        while answered() == before:
            if over.wait(LOOK_SECONDS):
                return
        if over.wait(pauses.uniform(0, longest_pause)):
            return
        _kill_now(home, names)
        before = answered()
        kills[" with ".join(names)] += 1
        cotrail("up")


def _kill_now(home: Path, names: tuple[str, ...]) -> None:
    processes = Processes(home)
    for name in names:
        victim = processes.find(name)
        assert victim is not None, f"{name} ended by itself"
        victim.kill()
    wait_until(lambda: not any(map(processes.find, names)), f"{names} have ended")
