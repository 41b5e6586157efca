"""How a worker tells the local stack that it can take work."""

import os
from pathlib import Path

VARIABLE = "COTRAIL_READY_FILE"
"""The environment variable that names the file to make; unset outside the local stack."""


def announce(name: str) -> None:
    """Says that the worker of that name is ready. Does nothing where nobody asked for it."""
    if path := os.environ.get(VARIABLE):
        written = Path(f"{path}.{os.getpid()}")
        written.write_text(f"{name} {os.getpid()}\n")
        written.replace(path)
