"""Folders that one process at a time may build in."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cotrail.errors import InputError


@contextmanager
def exclusive_folder(folder: Path, busy: InputError) -> Iterator[None]:
    """Holds the folder's lock, which the kernel gives back when the process dies; raises `busy` if another has it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise busy from error
    finally:
        os.close(descriptor)
