"""The local stack of one home: its services, the order in which they start and stop, and their state."""

import enum
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from msgspec import Struct

from configuration.settings import Settings
from cotrail.errors import UnavailableError
from workers.health import problem_of
from workers.stack import python
from workers.stack.flower import Access, new_access, read_access
from workers.stack.place import STATE, find_place
from workers.stack.postgres import postgres
from workers.stack.process import Processes, Service
from workers.stack.redis import redis
from workers.stack.wheels import package_folder

SERVERS = ("postgres", "redis")
WORKERS = ("generation", "retrieval", "evidence", "maintenance")
NAMES = (*SERVERS, *WORKERS, "flower")


class State(enum.StrEnum):
    """The state of a service."""

    RUNNING = enum.auto()

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
    """Bytes of the process and its children; shared memory counts once."""

    log: Path | None = None

    problem: str | None = None
    """What keeps a worker from its work, as it reports itself or as its silence shows."""


class Stack:
    """PostgreSQL, Redis, the workers, maintenance and Flower of the home that the settings name.

    Its methods keep no state: each reads what it needs from disk and the process table. So any number of commands may
    use one stack, one after another or at once.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._home = settings.home.absolute()
        self._processes = Processes(self._home)

    def up(self, *, flower: bool = False) -> Access | None:
        """Start what doesn't run, bring the schema up to date, and wait until all is ready.

        Returns the access to Flower if it runs. Raises UnavailableError where a service doesn't become ready.
        """
        from models.schema.migrating import migrate

        with self._lock():
            self._processes.start(*self._servers())
            migrate(self._settings.database)
            access = self._flower_access(start=flower)
            self._processes.start(*self._workers(events=access is not None), *self._flower(access))
        return access

    def start_servers(self) -> None:
        """Start PostgreSQL and Redis alone, unless they run or the settings name others."""
        with self._lock():
            self._processes.start(*self._servers())

    def down(self) -> bool:
        """Stop everything that `up` started; returns whether anything ran."""
        if not self._home.exists():
            return False
        with self._lock():
            readers = [*self._flower(read_access(self._access_path)), *self._workers(events=False)]
            workers_ran = self._processes.stop(*readers)
            servers_ran = self._processes.stop(*self._servers())
            if self._settings.socket_path != self._home / "run":
                with suppress(OSError):
                    self._settings.socket_path.rmdir()
        return workers_ran or servers_ran

    def remove(self) -> None:
        """Stop everything, and remove PostgreSQL's data, which is outside the home for root."""
        self.down()
        data = (self._home / "postgres").resolve()
        if data.exists():
            shutil.rmtree(data.parent if data.is_relative_to(STATE) else data)

    def status(self) -> tuple[Status, ...]:
        """Return the state of each service."""
        return tuple(self._status(name) for name in NAMES)

    def _servers(self) -> list[Service]:
        sockets = self._settings.socket_path
        servers = []
        if not self._is_external("redis"):
            servers.append(redis(self._home, sockets))
        if not self._is_external("postgres"):
            servers.append(postgres(find_place(self._home, sockets), sockets))
        return servers

    def _workers(self, *, events: bool) -> list[Service]:
        return [
            *(python.worker(self._settings, role, events=events) for role in ("generation", "retrieval", "evidence")),
            python.maintenance(self._settings),
        ]

    def _flower(self, access: Access | None) -> list[Service]:
        return [] if access is None else [python.flower(self._settings, access)]

    def _flower_access(self, *, start: bool) -> Access | None:
        if self._processes.find("flower") is not None:
            return read_access(self._access_path)
        if not start:
            return None
        package_folder("flower", extra="monitoring")
        return new_access(self._access_path)

    @property
    def _access_path(self) -> Path:
        return self._home / "flower.json"

    def _is_external(self, name: str) -> bool:
        """Return whether the settings name such a server, and the stack has none left from before they did."""
        url = {"postgres": self._settings.database_url, "redis": self._settings.broker_url}.get(name)
        return url is not None and not self._processes.recorded(name)

    def _status(self, name: str) -> Status:
        log = self._processes.log(name)
        process = self._processes.find(name)
        if process is not None:
            with suppress(psutil.NoSuchProcess):
                return _running(name, process, log, self._problem(name))
        if self._is_external(name):
            return Status(name=name, state=State.EXTERNAL)
        state = State.DIED if self._processes.recorded(name) else State.STOPPED
        return Status(name=name, state=state, log=log if log.exists() else None)

    def _problem(self, name: str) -> str | None:
        return problem_of(python.ready_file(self._settings, name)) if name in WORKERS else None

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Let one command at a time start and stop services."""
        self._home.mkdir(parents=True, exist_ok=True)
        for folder in (self._home / "run", self._settings.socket_path):
            _make_private(folder)
        with (self._home / "run" / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise UnavailableError(f"{folder} must be a folder of your own; remove it, or set COTRAIL_HOME to another home")
    folder.chmod(0o700)


def _running(name: str, process: psutil.Process, log: Path, problem: str | None) -> Status:
    uptime, memory = time.time() - process.create_time(), _memory(process)
    return Status(
        name=name, state=State.RUNNING, pid=process.pid, uptime=uptime, memory=memory, log=log, problem=problem
    )


def _memory(process: psutil.Process) -> int:
    memory: int = process.memory_info().rss
    for child in process.children(recursive=True):
        try:
            info = child.memory_info()
        except psutil.NoSuchProcess:
            continue
        memory += info.rss - getattr(info, "shared", 0)
    return memory
