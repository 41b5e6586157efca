"""The state of the local stack's services, as `cotrail stack` shows it, and signs that they live."""

import enum
import time
from contextlib import suppress
from pathlib import Path

import psutil
from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.actions.kind import Role

# When a service that died is started again: with a pause that grows while it keeps dying.

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
        """Return the same for a service that runs, no matter who started it."""
        return replace(self, due=None)

    def seconds_left(self, now: float) -> float:
        """Return how long a dead service stays dead for now; 0 where its death wasn't seen yet."""
        return 0.0 if self.due is None else max(self.due - now, 0.0)


def died(before: Restarts, now: float, *, uptime: float, reason: str | None) -> Restarts:
    """Return what holds once a service was seen dead that ran for `uptime` seconds."""
    return failed(replace(before, pause=0.0) if uptime >= STABLE_SECONDS else before, now, reason)


def failed(before: Restarts, now: float, reason: str | None) -> Restarts:
    """Return what holds once a service couldn't be started."""
    pause = min(max(2 * before.pause, SHORTEST_SECONDS), LONGEST_SECONDS)
    return replace(before, pause=pause, due=now + pause, reason=reason)


def started(before: Restarts) -> Restarts:
    """Return what holds once a service was started again."""
    return replace(before, count=before.count + 1, due=None)


SERVERS = ("postgres", "redis")
ROLES: tuple[Role, ...] = ("generation", "retrieval", "evidence")
WORKERS = (*ROLES, "maintenance")
SUPERVISORS = ("supervisor-1", "supervisor-2")
NAMES = (*SERVERS, *WORKERS, "api", "flower", *SUPERVISORS)


class State(enum.StrEnum):
    """The state of a service."""

    RUNNING = enum.auto()

    STARTING = enum.auto()
    """It was started a moment ago and isn't ready yet."""

    WAITING = enum.auto()
    """It is started as soon as a step needs it."""

    STOPPED = enum.auto()
    """It wasn't started, or was stopped on purpose."""

    DIED = enum.auto()
    """It was started and has ended by itself; its log may tell why."""

    EXTERNAL = enum.auto()
    """The settings name a server, so the stack starts none of its own."""


class Status(Struct, frozen=True, kw_only=True):
    """The state of a service; fields that only a running one has are None otherwise."""

    name: str
    state: State
    pid: int | None = None

    uptime: float | None = None
    """Seconds."""

    memory: int | None = None
    """Bytes of the process and its children; shared memory counts once. A supervisor's children are services."""

    log: Path | None = None

    problem: str | None = None
    """What keeps a running one from its work, as it reports itself or as its silence shows."""

    frozen: bool = False
    """Whether another process in its place may work: the supervisor ends one whose problem lasts."""

    restarts: int = 0
    """How often it was started again since `cotrail up`."""

    ended: str | None = None
    """How it ended, or why it couldn't be started, the last time; None where that isn't known."""

    restart_seconds: float | None = None
    """In how many seconds a dead one is started again; None where nothing starts it."""

    @property
    def works(self) -> bool:
        """Whether it does what it should, or isn't meant to run."""
        return self.state not in (State.DIED, State.STARTING) and self.problem is None


def uptime_of(process: psutil.Process) -> float:
    """Return for how many seconds the process has been running."""
    return time.time() - process.create_time()


def memory_of(process: psutil.Process, *, children: bool) -> int:
    """Return the bytes of a process, with or without its children."""
    memory: int = process.memory_info().rss
    for child in process.children(recursive=True) if children else ():
        try:
            info = child.memory_info()
        except psutil.NoSuchProcess:
            continue
        memory += info.rss - getattr(info, "shared", 0)
    return memory


# Signs of life of a starting process, which takes as long as it takes on a slow machine or with a large model.

STALL_SECONDS = 120.0
"""How long a starting process may show no life before it is given up."""

LOOK_SECONDS = 1.0
"""The pause between two looks, which read the whole family of the process."""


class Life:
    """Whether a process computes, reads or logs something, it or its children."""

    def __init__(self, process: psutil.Process, log: Path) -> None:
        self._process = process
        self._log = log
        self._seen: tuple[float, int, int] | None = None
        self._changed = self._looked = time.monotonic()

    def still_for(self) -> float:
        """Return for how many seconds it has shown none."""
        now = time.monotonic()
        if self._seen is None or now - self._looked >= LOOK_SECONDS:
            self._looked = now
            if (signs := self._signs()) != self._seen:
                self._seen, self._changed = signs, now
        return now - self._changed

    def _signs(self) -> tuple[float, int, int]:
        computed, read, logged = 0.0, 0, 0
        with suppress(psutil.Error):
            for each in (self._process, *self._process.children(recursive=True)):
                with suppress(psutil.Error, AttributeError):  # not every system counts what is read
                    times = each.cpu_times()
                    computed += times.user + times.system
                    read += each.io_counters().read_bytes
        with suppress(OSError):
            logged = self._log.stat().st_size
        return computed, read, logged
