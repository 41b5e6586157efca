"""A wall clock that is wrong.

`time.time` and `time.time_ns` are shifted, for the process and every library that it uses; `datetime.now` and the
monotonic clock, which Python reads below these, are not. Leases, delays and timestamps are PostgreSQL's, so that no
worker's clock may matter; this shows that none does.
"""

import time
from pathlib import Path

LOOK_SECONDS = 0.1
"""Seconds between two reads of the file."""


class _Offset:
    """The seconds in the file, 0 if it doesn't exist."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._looked = float("-inf")
        self._seconds = 0.0

    def seconds(self) -> float:
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self._looked = time.monotonic()
            try:
                self._seconds = float(self._path.read_text() or 0)
            except FileNotFoundError:
                self._seconds = 0.0
        return self._seconds


def install(path: Path) -> None:
    """Shifts this process's clock by the seconds in the file from now on."""
    offset, real, real_ns = _Offset(path), time.time, time.time_ns
    time.time = lambda: real() + offset.seconds()
    time.time_ns = lambda: real_ns() + int(offset.seconds() * 1e9)
