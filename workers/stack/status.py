"""The state of the local stack's services, as `cotrail stack` shows it."""

import enum
import time
from pathlib import Path

import psutil
from msgspec import Struct

from cotrail.core.actions.kind import Role

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
