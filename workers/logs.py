"""Logs of the local stack: one file for each service, for its owner only, and of bounded size.

A service outlives the command that started it, and so appends to its file itself: no process between the two could end,
and the last lines of a killed process are in the file. A file that has grown too long is rotated:

- by each Python process its own (`turn`), without loss;
- by the supervisor those of programs that keep their file open (`rotate_copied`), which may lose a line
  written at that moment;
- by each start of its service.
"""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import BinaryIO

VARIABLE = "COTRAIL_LOG"
"""The environment variable that names a process's own log; unset outside the local stack."""

MOST_BYTES = 10_000_000
"""The size in bytes at which a log is rotated."""

KEPT_FILES = 2
"""The number of former files kept; the newest ends in `.1`."""

LOOK_SECONDS = 1.0

_OUTPUTS = (1, 2)
"""Standard output and error, by descriptor: libraries in C write there too, past Python's streams."""


def log_path(home: Path, name: str) -> Path:
    """Return the path of a service's log."""
    return home / "logs" / f"{name}.log"


def open_log(path: Path) -> BinaryIO:
    """Open a log for appending, for its owner only; rotated if it is too long. No process may have it open."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.parent.chmod(0o700)
    if _is_long(path):
        _move(path)
    return _opened(path)


def keep_bounded() -> None:
    """Start a thread that rotates this process's own log, if the environment names one."""
    if own := os.environ.get(VARIABLE):
        _look_repeatedly(_turn_own, [Path(own)])


def keep_others_bounded(paths: Sequence[Path]) -> None:
    """Start a thread that rotates logs that other processes write to."""
    _look_repeatedly(rotate_copied, paths)


def turn(path: Path) -> None:
    """Rotate the file that this process writes to."""
    _move(path)
    with _opened(path) as file:
        for output in _OUTPUTS:
            os.dup2(file.fileno(), output)


def rotate_copied(path: Path) -> None:
    """Rotate a file that another process writes to: copy it, then empty it."""
    copy = path.with_name(f"{path.name}.copy")
    copy.unlink(missing_ok=True)  # left by an interruption
    with path.open("rb+") as file, _opened(copy) as target:
        shutil.copyfileobj(file, target)
        target.flush()
        file.truncate(0)
    _make_room(path)
    copy.replace(_former(path, 1))


def _look_repeatedly(rotate: Callable[[Path], None], paths: Sequence[Path]) -> None:
    def keep() -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            for path in paths:
                with suppress(OSError):  # as on a full disk; the next round tries again
                    if _is_long(path):
                        rotate(path)

    Thread(target=keep, name="logs", daemon=True).start()


def _turn_own(own: Path) -> None:
    # Only where its output still goes there; elsewhere it would be turned away from a terminal or another file.
    if own.samefile(f"/dev/fd/{_OUTPUTS[0]}"):
        turn(own)


def _is_long(path: Path) -> bool:
    return path.exists() and path.stat().st_size > MOST_BYTES


def _opened(path: Path) -> BinaryIO:
    # Appending, so that a file which `rotate_copied` has emptied is written from its beginning and has no hole.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "ab")


def _former(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _move(path: Path) -> None:
    _make_room(path)
    path.chmod(0o600)
    path.replace(_former(path, 1))


def _make_room(path: Path) -> None:
    for number in range(KEPT_FILES, 1, -1):
        with suppress(FileNotFoundError):
            _former(path, number - 1).replace(_former(path, number))
