"""How a process says that it can take work, and goes on saying how it is."""

import os
from contextlib import suppress
from pathlib import Path

VARIABLE = "COTRAIL_READY_FILE"
"""The environment variable that names the file to write; the local stack and the containers set it."""


def announce(name: str, problem: str = "") -> None:
    """Says that the process of that name lives, and what keeps it from its work. Nothing where nobody asked for it."""
    if path := os.environ.get(VARIABLE):
        written = Path(f"{path}.{os.getpid()}")
        with suppress(OSError):  # as where the disk is full: who reads the file sees that it is old
            written.write_text(f"{name} {os.getpid()}\n{problem}\n")
            written.replace(path)
