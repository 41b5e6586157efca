"""When a service that died is started again: with a pause that grows while it keeps dying."""

from msgspec import Struct
from msgspec.structs import replace

SHORTEST_SECONDS = 1.0
LONGEST_SECONDS = 60.0
"""The pauses before the first restart and before each of those that didn't help."""

STABLE_SECONDS = 60.0
"""How long a service must have run so that its next pause is the shortest again."""


class Restarts(Struct, frozen=True, kw_only=True):
    """What became of one service since `cotrail up`.

    Times are seconds of the monotonic clock, which all processes share until the machine restarts.
    """

    count: int = 0
    """How often it was started again."""

    pause: float = 0.0
    """The latest pause; 0 where it never died, or ran well before it died."""

    due: float | None = None
    """When it is started again; None where it wasn't seen dead."""

    reason: str | None = None
    """How it ended, or why it couldn't be started, the last time; None where that isn't known."""

    def is_due(self, now: float) -> bool:
        """Return whether it is dead and has been for its pause."""
        return self.due is not None and now >= self.due

    def found_running(self) -> "Restarts":
        """Return the same for a service that runs, whoever started it."""
        return replace(self, due=None)

    def seconds_left(self, now: float) -> float:
        """Return how long a dead service stays dead for now; 0 where its death wasn't seen yet."""
        return 0.0 if self.due is None else max(self.due - now, 0.0)


def died(before: Restarts, now: float, *, uptime: float, reason: str | None) -> Restarts:
    """Return what holds once a service was seen dead that ran for `uptime` seconds."""
    return _paused(replace(before, pause=0.0) if uptime >= STABLE_SECONDS else before, now, reason)


def failed(before: Restarts, now: float, reason: str) -> Restarts:
    """Return what holds once a service couldn't be started."""
    return _paused(before, now, reason)


def started(before: Restarts) -> Restarts:
    """Return what holds once a service was started again."""
    return replace(before, count=before.count + 1, due=None)


def _paused(before: Restarts, now: float, reason: str | None) -> Restarts:
    pause = min(max(2 * before.pause, SHORTEST_SECONDS), LONGEST_SECONDS)
    return replace(before, pause=pause, due=now + pause, reason=reason)
