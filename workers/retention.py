"""Retention: removing runs that ended long ago, a few rows after each sweep."""

import logging
import time
from collections.abc import Iterator

from sqlalchemy import Engine

from cotrail.errors import InputError
from cotrail.models.commands.pruning import Pruned, begun, ended_before, prune

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 3600
"""The interval between two searches for runs to remove."""


class Retention:
    """Does now and then what `cotrail prune --older-than DAYS` does, and completes interrupted prunings.

    days: how long runs are kept after their end; None for always.
    """

    def __init__(self, engine: Engine, days: float | None) -> None:
        self._engine = engine
        self._days = days
        self._pruning: Iterator[Pruned] = iter(())
        self._looks_at = time.monotonic()

    def remove_next(self) -> None:
        """Remove the next few rows of runs to be removed, if there are any."""
        try:
            if next(self._pruning, None) is None and time.monotonic() >= self._looks_at:
                self._looks_at = time.monotonic() + PAUSE_SECONDS
                self._look()
        except InputError as error:
            logger.warning("a run that was about to be removed is under way again: %s", error)

    def _look(self) -> None:
        with self._engine.begin() as connection:
            run_ids = begun(connection)
            if self._days is not None:
                run_ids += ended_before(connection, self._days)
        if run_ids:
            logger.info("%d runs are removed: %s", len(run_ids), ", ".join(run_ids))
            self._pruning = prune(self._engine, run_ids)
