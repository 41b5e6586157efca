"""The local stack's logs: a file a service, for its owner only, and of bounded size.

A service writes to the end of its file by itself and outlives the command that started it. So nothing stands between
the two that could end, and what a killed process wrote is there. A file that has grown too long is begun anew:

- its own by each Python process (`turn`), which loses nothing;
- those of programs that hold on to their file by maintenance (`cut`), which may lose a line of that very moment;
- each when its service starts.
"""

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import BinaryIO

OWN, OTHERS = "COTRAIL_LOG", "COTRAIL_OTHER_LOGS"
"""The environment variables that name a process's own log, and those that it cuts; unset outside the local stack."""

LIMIT = 10_000_000
"""How many bytes a log may have before it is begun anew."""

KEPT = 2
"""How many former files are kept: the newest ends in `.1`."""

LOOK_SECONDS = 1.0

_OUTPUTS = (1, 2)
"""Standard output and error: what libraries in C write goes there too."""


def log_path(home: Path, name: str) -> Path:
    """Where the output of a service is."""
    return home / "logs" / f"{name}.log"


def open_log(path: Path) -> BinaryIO:
    """The file for writing at its end, for its owner only; begun anew if it is too long. Nobody may have it open."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.parent.chmod(0o700)
    if _is_long(path):
        _move(path)
    return _opened(path)


def keep_bounded() -> None:
    """Has a thread look after the logs that the environment names, if it names any."""
    if own := os.environ.get(OWN):
        others = [Path(path) for path in os.environ.get(OTHERS, "").split(os.pathsep) if path]
        Thread(target=_keep, args=(Path(own), others), name="logs", daemon=True).start()


def turn(path: Path) -> None:
    """Has this process, which writes to that file, go on in a new one."""
    _move(path)
    with _opened(path) as file:
        for output in _OUTPUTS:
            os.dup2(file.fileno(), output)


def cut(path: Path) -> None:
    """Copies a file that another process writes to, and empties it."""
    copy = path.with_name(f"{path.name}.copy")
    copy.unlink(missing_ok=True)  # of one that was interrupted
    with path.open("rb+") as file, _opened(copy) as written:
        shutil.copyfileobj(file, written)
        written.flush()
        file.truncate(0)
    _make_room(path)
    copy.replace(_former(path, 1))


def _keep(own: Path, others: Sequence[Path]) -> None:
    while True:
        time.sleep(LOOK_SECONDS)
        with suppress(OSError):  # as on a full disk; it is tried again
            if _is_long(own) and own.samefile(f"/dev/fd/{_OUTPUTS[0]}"):
                turn(own)
        for path in others:
            with suppress(OSError):
                if _is_long(path):
                    cut(path)


def _is_long(path: Path) -> bool:
    return path.exists() and path.stat().st_size > LIMIT


def _opened(path: Path) -> BinaryIO:
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
    for number in range(KEPT, 1, -1):
        with suppress(FileNotFoundError):
            _former(path, number - 1).replace(_former(path, number))
