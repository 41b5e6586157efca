"""Signs of life of a starting process, which takes as long as it takes on a slow machine or with a large model."""

import time
from contextlib import suppress
from pathlib import Path

import psutil

STALL_SECONDS = 120.0
"""How long a starting process may show no life before it is given up."""

LOOK_SECONDS = 1.0
"""The pause between two looks, which read the whole family of the process."""


class Life:
    """Whether a process computes, reads or logs something, it or its children."""

    def __init__(self, process: psutil.Process, log: Path) -> None:
        self._process = process
        self._log = log
        self._seen: tuple[float, int, int] | None = None
        self._changed = self._looked = time.monotonic()

    def still_for(self) -> float:
        """Return for how many seconds it has shown none."""
        now = time.monotonic()
        if self._seen is None or now - self._looked >= LOOK_SECONDS:
            self._looked = now
            if (signs := self._signs()) != self._seen:
                self._seen, self._changed = signs, now
        return now - self._changed

    def _signs(self) -> tuple[float, int, int]:
        computed, read, logged = 0.0, 0, 0
        with suppress(psutil.Error):
            for each in (self._process, *self._process.children(recursive=True)):
                with suppress(psutil.Error, AttributeError):  # not every system counts what is read
                    times = each.cpu_times()
                    computed += times.user + times.system
                    read += each.io_counters().read_bytes
        with suppress(OSError):
            logged = self._log.stat().st_size
        return computed, read, logged
