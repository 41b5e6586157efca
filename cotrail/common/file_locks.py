"""Exclusive locks on files and folders, for builds that one process at a time may do."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cotrail.errors import InputError


def lock_exclusively(descriptor: int, busy: InputError) -> None:
    """Lock an open file or folder; raises `busy` if another process holds the lock.

    The kernel releases the lock when the descriptor is closed, also where the process was killed; so no stale lock file
    can be left behind.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise busy from error


@contextmanager
def exclusive_folder(folder: Path, busy: InputError) -> Iterator[None]:
    """Hold the folder's lock; raises `busy` if another process holds it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        lock_exclusively(descriptor, busy)
        yield
    finally:
        os.close(descriptor)
