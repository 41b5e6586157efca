"""A job under way, as the code sees it that carries it out."""

import shutil
import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine

from cotrail.models.execution.jobs import Held, note_progress
from cotrail.services.data.uploaded_files import project_folder

NOTE_SECONDS = 1.0
"""How long progress waits for more of it until it is recorded."""


class LostJobError(Exception):
    """The job was cancelled, or another process has taken it up: nothing of it counts any more."""


class Work:
    """A job under way; held: its id and epoch; request: what is to be done."""

    def __init__(self, engine: Engine, held: Held, request: Mapping[str, Any]) -> None:
        self.engine = engine
        self.request = request
        self.folder = project_folder() / "jobs" / held[0]
        """A folder of its own, for files of the request at their places; removed in the end."""
        self._held = held
        self._noted_at = 0.0

    def progress(self, done: int, result: Mapping[str, Any] | None = None) -> None:
        """Note how far it is, at most once a second; raises LostJobError."""
        if time.monotonic() - self._noted_at < NOTE_SECONDS:
            return
        self._noted_at = time.monotonic()
        with self.engine.begin() as connection:
            if not note_progress(connection, self._held, done, None if result is None else dict(result)):
                raise LostJobError

    def __enter__(self) -> "Work":
        self._clear()  # what a killed process left
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def _clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
