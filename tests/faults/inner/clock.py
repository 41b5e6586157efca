"""A wall clock that is wrong.

`time.time` and `time.time_ns` are moved, for the process and whatever library it uses; `datetime.now` and the
monotonic clock, which Python reads below these, are not. Leases, delays and time stamps are PostgreSQL's, so that no
worker's clock may matter: what this shows is that none does.
"""

import time
from pathlib import Path

LOOK_SECONDS = 0.1
"""How often the file is looked at."""


class _Offset:
    """How many seconds the file says, 0 where it isn't there."""

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
    """Moves this process's clock by what the file says from now on."""
    offset, real, real_ns = _Offset(path), time.time, time.time_ns
    time.time = lambda: real() + offset.seconds()
    time.time_ns = lambda: real_ns() + int(offset.seconds() * 1e9)
