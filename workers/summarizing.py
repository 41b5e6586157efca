"""Summarizing questions that have ended, beside maintenance: in a process of its own, which goes behind all others."""

import logging
import subprocess
import sys
import threading

from sqlalchemy import Engine, func, select
from sqlalchemy.exc import SQLAlchemyError

from cotrail.models.commands.summarizing import VERSION, due_runs
from cotrail.models.records.maintaining import SUMMARIZER

logger = logging.getLogger(__name__)

MODULE = "cotrail.services.summarizing"
"""What summarizes; a process of its own, and so no import."""

LOOK_SECONDS = 10.0
"""Between two looks for questions that have ended."""


class SummaryRunner:
    """Has a process summarize questions where there are any, in a thread; look: seconds between two looks."""

    def __init__(self, engine: Engine, look: float = LOOK_SECONDS) -> None:
        self._engine = engine
        self._look = look
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="summaries", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End the process; what it has written stays."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._look):
            try:
                self._begin()
            except SQLAlchemyError as error:
                logger.warning("questions that have ended can't be looked for, trying again: %s", error)
        self._end()

    def _begin(self) -> None:
        """Start the process where there is something to do and none runs, on whichever machine."""
        if self._process is not None and self._process.poll() is None:
            return
        self._end()
        with self._engine.connect() as connection:
            free = connection.execute(select(func.pg_try_advisory_xact_lock(SUMMARIZER))).scalar()
            due = free and due_runs(connection, VERSION, 1)
        if due:
            # In a session of its own: Ctrl-C in a terminal reaches the parent alone.
            command = [sys.executable, "-m", MODULE]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def _end(self) -> None:
        if self._process is None:
            return
        if self._process.stdin is not None:
            self._process.stdin.close()  # which ends it
        self._process.wait()
        self._process = None
