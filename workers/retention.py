"""Retention: runs that ended long ago are removed, a little at a time between the sweeps."""

import logging
import time
from collections.abc import Iterator

from sqlalchemy import Engine

from cotrail.errors import InputError
from models.commands.pruning import Pruned, begun, ended_before, prune

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 3600
"""How long it takes until runs are looked for again."""


class Retention:
    """What `cotrail prune --older-than DAYS` does, now and then; pruning that was broken off is always gone on with."""

    def __init__(self, engine: Engine, days: float | None) -> None:
        self._engine = engine
        self._days = days
        self._pruning: Iterator[Pruned] = iter(())
        self._looks_at = time.monotonic()

    def go_on(self) -> None:
        """Removes the next few rows, if any are to go."""
        try:
            if next(self._pruning, None) is None and time.monotonic() >= self._looks_at:
                self._looks_at = time.monotonic() + PAUSE_SECONDS
                self._look()
        except InputError as error:
            logger.warning("a run goes on that was about to be removed: %s", error)

    def _look(self) -> None:
        with self._engine.begin() as connection:
            found = begun(connection)
            if self._days is not None:
                found += ended_before(connection, self._days)
        if found:
            logger.info("%d runs are removed: %s", len(found), ", ".join(found))
            self._pruning = prune(self._engine, found)
