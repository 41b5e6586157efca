"""A watcher of the store: notes when steps are recorded, and submits another run whenever work runs out."""

import threading
import time
from collections.abc import Callable

from tests.chaos.world import World

LOOK_SECONDS = 0.1
"""Seconds between two queries."""

OPEN = "SELECT count(*) FROM questions WHERE status NOT IN ('finished', 'failed', 'cancelled')"
DONE = "SELECT count(*) FROM attempts WHERE outcome = 'finished'"


class Watch:
    """Watches the store from a thread of its own.

    feed: submits a run; it is called whenever fewer than `enough` questions are open.
    progress: when (on the monotonic clock) more steps were finished than before.
    """

    def __init__(self, world: World, feed: Callable[[], object], enough: int) -> None:
        self.progress: list[float] = []
        self.failed_submissions = 0
        self.finished = 0
        self._world = world
        self._feed = feed
        self._enough = enough
        self._fed, self._over = threading.Event(), threading.Event()
        self._feeding = threading.Thread(target=self._keep_busy, daemon=True)
        self._looking = threading.Thread(target=self._look, daemon=True)

    def start(self) -> None:
        """Starts to watch and to submit."""
        self._feeding.start()
        self._looking.start()

    def stop_feeding(self) -> None:
        """Stops submitting."""
        self._fed.set()
        self._feeding.join()

    def end(self) -> None:
        """Stops watching."""
        self._over.set()
        self._looking.join()

    def recovery(self, since: float) -> float | None:
        """Seconds from that moment to the next finished step; None if there was none."""
        return next((when - since for when in self.progress if when >= since), None)

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            done = self._world.count(DONE)
            if done is not None and done > self.finished:
                self.finished = done
                self.progress.append(time.monotonic())

    def _keep_busy(self) -> None:
        while not self._fed.wait(LOOK_SECONDS):
            still = self._world.count(OPEN)
            if still is not None and still < self._enough:
                try:
                    self._feed()
                except AssertionError:  # PostgreSQL went away; the run is there whole or not at all
                    self.failed_submissions += 1
