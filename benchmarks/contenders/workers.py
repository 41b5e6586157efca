"""Worker processes for the duration of a measurement."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

from cotrail.workers.health import VARIABLE

DEADLINE_SECONDS = 60

PATIENCE_SECONDS = 3600
"""Time limit of a complete measurement."""

PREFETCH = 4
"""Messages a worker prefetches per executing step, where steps cost nothing: Celery's default."""


@contextmanager
def running(
    commands: Sequence[Sequence[str]], environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[list[int]]:
    """Start `python -m ...` commands, wait until all are ready, yield their process ids, and stop them in the end.

    environment: additional variables; this process's own take precedence.
    """
    pids = []
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        ready = [Path(folder, f"{number}.ready") for number in range(len(commands))]
        for command, file in zip(commands, ready, strict=True):
            process = subprocess.Popen(
                [sys.executable, "-m", *command],
                env={**environment, **os.environ, VARIABLE: str(file)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            pids.append(process.pid)
            stack.callback(process.wait, 30)
            stack.callback(process.terminate)
        wait_until(lambda: all(file.exists() for file in ready))
        yield pids


def wait_until(done: Callable[[], bool], seconds: float = DEADLINE_SECONDS) -> None:
    """Poll ten times a second; TimeoutError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not there after {seconds} s")
        time.sleep(0.1)


def worker(app: str, queues: str, pool: str, concurrency: int, number: int = 0, prefetch: int = 1) -> list[str]:
    """The command of a Celery worker.

    number: distinguishes workers of the same queues; prefetch: messages prefetched per executing one.
    """
    name = f"{queues.replace(',', '-')}-{number}@%h"
    options = ["-P", pool, "-c", str(concurrency), "-n", name, "-l", "WARNING", "--prefetch-multiplier", str(prefetch)]
    return ["celery", "-A", app, "worker", "-Q", queues, *options, "--without-gossip", "--without-mingle"]


def alternating(app: str, queues: Sequence[str], pool: str, concurrency: int, processes: int) -> list[list[str]]:
    """The commands of `processes` workers: a single one serves all queues, several serve one each in turn."""
    if processes == 1:
        return [worker(app, ",".join(queues), pool, concurrency, prefetch=PREFETCH)]
    return [worker(app, queues[n % len(queues)], pool, concurrency, n, PREFETCH) for n in range(processes)]
