"""Temporary servers for a measurement."""

import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cotrail.configuration.settings import Settings
from cotrail.workers.stack.stack import Stack


@contextmanager
def own_servers() -> Iterator[Settings]:
    """Start a PostgreSQL and a Redis and yield settings for them; they are removed in the end, after SIGTERM too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="cotrail-benchmark-") as folder:
        settings = Settings(home=Path(folder), database_url=None, broker_url=None)
        stack = Stack(settings)
        try:
            stack.start_servers()
            yield settings
        finally:
            stack.remove()
