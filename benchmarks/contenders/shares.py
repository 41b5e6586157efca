"""Division of the questions among several processes."""

import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier

Work = Callable[[range, Barrier], None]
"""Prepares itself, waits for the others at the barrier, answers these questions, and waits for the others again."""


def timed(work: Work, count: int, processes: int) -> float:
    """Measure the seconds that the processes take for the questions, from when all are ready until all are done."""
    spawning = get_context("spawn")
    together = spawning.Barrier(processes + 1)
    shares = [range(first, count, processes) for first in range(processes)]
    started = [spawning.Process(target=_work, args=(work, share, together)) for share in shares]
    for process in started:
        process.start()
    together.wait()
    began = time.monotonic()
    together.wait()
    seconds = time.monotonic() - began
    for process in started:
        process.join()
    return seconds


def _work(work: Work, share: range, together: Barrier) -> None:
    """Do the work; if it fails, release the other processes and the timer, which would wait for this one forever."""
    try:
        work(share, together)
    except BaseException:
        together.abort()
        raise
