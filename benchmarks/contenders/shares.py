"""A share of the questions for each of several processes."""

import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier

Work = Callable[[range, Barrier], None]
"""Gets ready, waits for the others, answers these questions, and waits for the others again."""


def timed(work: Work, count: int, processes: int) -> float:
    """How many seconds so many processes take for the questions, from when all are ready until all are done."""
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
    """Frees the others, and the one who counts the time, from waiting for a process that failed."""
    try:
        work(share, together)
    except BaseException:
        together.abort()
        raise
