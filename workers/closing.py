"""Closing runs in a thread beside the sweeps: the digest over millions of questions takes minutes."""

import logging
import threading
from collections.abc import Sequence

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from cotrail.models.execution.closing import Closed, close_run, runs_to_close
from cotrail.workers.backoff import Backoff

logger = logging.getLogger(__name__)

SHORTEST_PAUSE, LONGEST_PAUSE = 60.0, 3600.0
"""Bounds of the backoff, in seconds, of a run that can't be closed."""


class Closing:
    """Closes runs one after another in a thread; one that can't be closed doesn't hold up the others.

    closed: called in the transaction that seals a run.
    """

    def __init__(self, engine: Engine, closed: Closed) -> None:
        self._engine = engine
        self._closed = closed
        self._failed: dict[str, Backoff] = {}
        self._thread = threading.Thread()

    def start_due(self) -> None:
        """Begin to close the runs that are due, unless others are being closed."""
        if self._thread.is_alive():
            return
        with self._engine.begin() as connection:
            ended = runs_to_close(connection)
        self._failed = {run_id: backoff for run_id, backoff in self._failed.items() if run_id in ended}
        due = [run_id for run_id in ended if run_id not in self._failed or self._failed[run_id].due]
        if due:
            self._thread = threading.Thread(target=self._close, args=[due], name="closing", daemon=True)
            self._thread.start()

    def _close(self, run_ids: Sequence[str]) -> None:
        for run_id in run_ids:
            try:
                if close_run(self._engine, run_id, self._closed):
                    logger.info("all questions of %s have ended", run_id)
            except SQLAlchemyError as error:
                backoff = self._failed.setdefault(run_id, Backoff(SHORTEST_PAUSE, LONGEST_PAUSE))
                backoff.attempted(succeeded=False)
                logger.warning("%s can't be closed, trying again in %.0f s: %s", run_id, backoff.pause, error)
