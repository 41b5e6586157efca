"""Closing runs beside the sweeps: the digest over millions of questions takes minutes."""

import logging
import threading
from collections.abc import Sequence

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from models.execution.closing import close_run, runs_to_close
from workers.backoff import Backoff

logger = logging.getLogger(__name__)

SHORTEST, LONGEST = 60.0, 3600.0
"""How many seconds a run is left alone that can't be closed: ever longer, between these."""


class Closing:
    """Closes runs one after another in a thread of its own; one that can't be closed holds up no other."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._failed: dict[str, Backoff] = {}
        self._thread = threading.Thread()

    def go_on(self) -> None:
        """Begins to close the runs that are due, unless others are being closed."""
        if self._thread.is_alive():
            return
        with self._engine.begin() as connection:
            ended = runs_to_close(connection)
        self._failed = {run_id: pace for run_id, pace in self._failed.items() if run_id in ended}
        due = [run_id for run_id in ended if run_id not in self._failed or self._failed[run_id].due]
        if due:
            self._thread = threading.Thread(target=self._close, args=[due], name="closing", daemon=True)
            self._thread.start()

    def _close(self, run_ids: Sequence[str]) -> None:
        for run_id in run_ids:
            try:
                if close_run(self._engine, run_id):
                    logger.info("all questions of %s have ended", run_id)
            except SQLAlchemyError as error:
                pace = self._failed.setdefault(run_id, Backoff(SHORTEST, LONGEST))
                pace.looked(found=False)
                logger.warning("%s can't be closed, trying again in %.0f s: %s", run_id, pace.pause, error)
