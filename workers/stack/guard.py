"""The end of services that exist and don't work: frozen ones, and those that say that they can't continue."""

import time
from collections.abc import Iterable

from cotrail.workers.stack.stack import Stack

PATIENCE_SECONDS = 120.0
"""How long a service must have failed its health check without a pause: any machine is slow for a while."""

CHECK_SECONDS = 10.0
"""The pause between two checks."""

LONGEST_GAP = 2 * CHECK_SECONDS
"""The most seconds that count between two checks.

Where more passed, this process was frozen itself, most likely with the whole machine, and has seen nothing of them.
"""


class Guard:
    """Ends services that have failed their health check for too long."""

    def __init__(self, stack: Stack, *, patience: float = PATIENCE_SECONDS, pause: float = CHECK_SECONDS) -> None:
        self._stack = stack
        self._patience = patience
        self._pause = pause
        self._checked = time.monotonic()
        self._failing: dict[tuple[str, int], float] = {}

    def end_frozen(self, names: Iterable[str]) -> dict[str, str]:
        """Check these services if it is time to, and end those that are due; returns why by their names.

        Raises UnavailableError where a process can't be killed.
        """
        passed = time.monotonic() - self._checked
        if passed < self._pause:
            return {}
        self._checked += passed
        problems = {(name, frozen[0]): frozen[1] for name in names if (frozen := self._stack.frozen(name))}
        counted = min(passed, LONGEST_GAP)
        self._failing = {each: self._failing.get(each, -counted) + counted for each in problems}
        return {
            name: f"killed, as it didn't work for {self._failing[name, pid]:.0f} s: {problem}"
            for (name, pid), problem in problems.items()
            if self._failing[name, pid] >= self._patience and self._stack.kill(name, pid)
        }
