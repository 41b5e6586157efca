"""Readiness file, by which a process reports that it can take work, and how it is."""

import os
from contextlib import suppress
from pathlib import Path

VARIABLE = "COTRAIL_READY_FILE"
"""The environment variable that names the file; the local stack and the containers set it."""


def announce(name: str, problem: str = "") -> None:
    """Write that the process of that name lives, and what keeps it from its work; nothing where no file is named."""
    if path := os.environ.get(VARIABLE):
        temporary = Path(f"{path}.{os.getpid()}")
        try:
            temporary.write_text(f"{name} {os.getpid()}\n{problem}\n")
            temporary.replace(path)
        except OSError:  # as on a full disk, where the former report can still be touched: this process isn't silent
            with suppress(OSError):
                os.utime(path)


def withdraw() -> None:
    """Remove what another process reported in the same file: a container that is started again keeps its files."""
    if path := os.environ.get(VARIABLE):
        Path(path).unlink(missing_ok=True)
