"""The local stack of one home: its services, the order in which they start and stop, and their state."""

import fcntl
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import psutil
from msgspec.structs import replace

from cotrail.configuration.settings import Settings
from cotrail.configuration.variables import CELERY, LIBPQ, warn_of_taken_out
from cotrail.errors import InputError, UnavailableError
from cotrail.workers.health import ON_DEMAND, Problem
from cotrail.workers.stack import python
from cotrail.workers.stack.postgres import STATE, find_place, postgres, redis
from cotrail.workers.stack.process import Processes, Service, read_json, silent, write_json
from cotrail.workers.stack.python import package_folder
from cotrail.workers.stack.status import (
    NAMES,
    ROLES,
    SERVERS,
    SUPERVISORS,
    WORKERS,
    Restarts,
    State,
    Status,
    memory_of,
    uptime_of,
)
from cotrail.workers.stack.web import Access, Address, new_access, read_access, read_address, warn_of_left_out

SOON_SECONDS = 60.0
"""For how long a service that is starting has no problem worth showing."""

STARTED_IN_ORDER = (*SUPERVISORS, *SERVERS, *WORKERS, "api", "flower")


class Stack:
    """PostgreSQL, Redis, the workers, maintenance, the service, Flower and the supervisors of the home in the settings.

    Each method reads what it needs from disk and the process table, so any number of commands may use one stack, one
    after another or at once. Only how a process ended is known to no other than the one that started it.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._home = settings.home.absolute()
        self._processes = Processes(self._home)

    def up(
        self, *, flower: bool = False, supervised: bool = True, waiting: Callable[[str], None] = silent
    ) -> Access | None:
        """Start what doesn't run, bring the schema up to date, and wait until all is ready.

        supervised: whether what dies is restarted, with the environment and the code of this process. waiting: called
        again and again what is being waited for.
        Returns the access to Flower if it runs. Raises UnavailableError where a service doesn't become ready; whatever
        ends this, what it started is stopped, unless that had been started before.
        """
        from cotrail.models.schema.database import explained
        from cotrail.models.schema.migrating import migrate

        warn_of_taken_out(CELERY, LIBPQ)
        with self._lock(), self._processes.starting(waiting) as start:
            start(*self._servers())
            with explained(local=self._settings.database_url is None):
                migrate(self._settings.database)
            if supervised:
                self._supervise(start)
            access = self._flower_access(start=flower)
            if access is not None:
                warn_of_left_out()
                start(*self._flower(access))
                access = read_access(self._access_path)  # with the port on which it listens
            # Behind Flower: workers send events only where something shows them.
            later = [each for each in ON_DEMAND if supervised and not self._processes.recorded(each)]
            workers = self._workers(events=access is not None)
            start(*(each for each in workers if each.name not in later), self._api(access))
        return access

    def _supervise(self, start: Callable[..., None]) -> None:
        """Replace the supervisors, which have the environment and the code of the process that started them."""
        self._processes.end(*self._supervisors())
        self._restarts_path.unlink(missing_ok=True)
        start(*self._supervisors())

    def start_servers(self) -> None:
        """Start PostgreSQL and Redis alone, unless they run or the settings name others."""
        with self._lock():
            self._processes.start(*self._servers())

    def down(self) -> bool:
        """Stop everything that `up` started; returns whether anything ran."""
        if not self._home.exists():
            return False
        # Who starts a service holds the lock. So nothing can come back between the supervisors' end and the rest's.
        with self._lock():
            supervised = self._processes.stop(*self._supervisors())
            readers = [*self._flower(read_access(self._access_path)), *self._workers(events=False)]
            if self.address is not None:
                readers.append(self._api(None))
            # Before the servers: a worker that ends still records results and gives back its steps.
            workers_ran = self._processes.stop(*readers)
            for role in ON_DEMAND:
                python.wanted_file(self._settings, role).unlink(missing_ok=True)
            servers_ran = self._processes.stop(*self._servers())
            self._restarts_path.unlink(missing_ok=True)
            if self._settings.socket_path != self._home / "run":
                with suppress(OSError):
                    self._settings.socket_path.rmdir()
        return supervised or workers_ran or servers_ran

    def remove(self) -> None:
        """Stop everything, and remove PostgreSQL's data, which is outside the home for root."""
        self.down()
        data = (self._home / "postgres").resolve()
        if data.exists():
            shutil.rmtree(data.parent if data.is_relative_to(STATE) else data)

    def status(self) -> tuple[Status, ...]:
        """Return the state of each service."""
        restarts = self.restarts
        supervised = any(self.find(name) for name in SUPERVISORS)
        return tuple(self._status(name, restarts.get(name, Restarts()), supervised=supervised) for name in NAMES)

    def check_started(self) -> None:
        """Raises UnavailableError where `down` has stopped the stack, which is waited for if it does so just now."""
        with self._lock():
            there = self.started()
        if not there:
            raise UnavailableError("`cotrail down` has stopped what this command started; `cotrail up` starts it again")

    def started(self) -> tuple[str, ...]:
        """Return the services that were started and not stopped since, dead ones too, in the order of their start."""
        return tuple(name for name in STARTED_IN_ORDER if self._processes.recorded(name))

    def find(self, name: str) -> psutil.Process | None:
        """Return the process of a service, if it is alive."""
        return self._processes.find(name)

    def log(self, name: str) -> Path:
        return self._processes.log(name)

    def ending(self, name: str) -> tuple[float, str | None]:
        """Return for how many seconds a dead service ran at most, and how it ended where that is known."""
        return self._processes.seconds_since_start(name), self._processes.ending(name)

    def start_again(self, name: str) -> bool:
        """Start a service that died, without waiting until it is ready; returns whether it was started.

        It isn't where another command starts or stops services just now, or has done so.
        Raises UnavailableError or OSError where it can't be started.
        """
        try:
            with self._lock(fcntl.LOCK_NB):
                if not self._processes.recorded(name) or self.find(name) is not None:
                    return False
                self._processes.launch(self._service(name))
        except BlockingIOError:
            return False
        return True

    def start_wanted(self) -> Iterator[str]:
        """Start the workers that a step needs and that weren't started yet; yields their names.

        Raises UnavailableError or OSError where one can't be started.
        """
        for role in ON_DEMAND:
            wanted = python.wanted_file(self._settings, role)
            if not wanted.exists() or self._processes.recorded(role) or not self.servers_answer():
                continue
            with suppress(BlockingIOError), self._lock(fcntl.LOCK_NB):
                if self.started() and not self._processes.recorded(role):  # `down` may have ended everything meanwhile
                    self._processes.launch(self._service(role))
                    yield role

    def frozen(self, name: str) -> tuple[int, str] | None:
        """Return the process id of a service that fails its health check, and why, if another process may work."""
        process = self.find(name)
        if process is None:
            return None
        try:
            problem = self._problem(self._service(name), process)
        except (UnavailableError, psutil.NoSuchProcess):  # what it is made of is gone, or it ended just now
            return None
        return (process.pid, problem.said) if problem is not None and problem.restart else None

    def kill(self, name: str, pid: int) -> bool:
        """End the process of a service that doesn't work; returns whether it was ended.

        It isn't where another command starts or stops services just now, or where another process took its place.
        Raises UnavailableError where it can't be killed.
        """
        try:
            with self._lock(fcntl.LOCK_NB):
                process = self.find(name)
                if process is None or process.pid != pid:
                    return False
                # A supervisor's children are the services that it has started again.
                self._processes.kill(self._service(name), children=name not in SUPERVISORS)
        except BlockingIOError:
            return False
        return True

    def servers_answer(self) -> bool:
        """Return whether PostgreSQL and Redis answer, as far as they are the stack's own."""
        return all(service.ready() for service in self._servers())

    @property
    def address(self) -> Address | None:
        """The address of the service over HTTP, as it was started the last time."""
        return read_address(self._address_path)

    def kept_address(self) -> Address:
        """Return the address of the service, which was started before; raises UnavailableError where that is gone."""
        if self.address is None:
            raise UnavailableError(f"{self._address_path} is gone, which says where the service was started")
        return self.address

    @property
    def restarts(self) -> dict[str, Restarts]:
        """What the active supervisor wrote down of each service."""
        return read_json(self._restarts_path, dict[str, Restarts]) or {}

    @restarts.setter
    def restarts(self, restarts: dict[str, Restarts]) -> None:
        write_json(self._restarts_path, restarts)

    @contextmanager
    def supervision(self, meanwhile: Callable[[], None]) -> Iterator[None]:
        """Wait until no other process supervises this stack, and be the one that does.

        meanwhile: called again and again while another one does; it pauses.
        """
        with (self._home / "run" / "supervision.lock").open("w") as lock:
            while not _locked(lock):
                meanwhile()
            yield

    def _servers(self) -> list[Service]:
        return [self._service(name) for name in ("redis", "postgres") if not self._is_external(name)]

    def _workers(self, *, events: bool) -> list[Service]:
        return [
            *(python.worker(self._settings, role, events=events) for role in ROLES),
            python.maintenance(self._settings),
        ]

    def _supervisors(self) -> list[Service]:
        return [python.supervisor(self._settings, name) for name in SUPERVISORS]

    def _flower(self, access: Access | None) -> list[Service]:
        return [] if access is None else [python.flower(self._settings, access, self._access_path)]

    def _service(self, name: str) -> Service:
        """Return a service as it was started before. Raises UnavailableError where something of it is gone."""
        sockets = self._settings.socket_path
        match name:
            case "redis":
                return redis(self._home, sockets)
            case "postgres":
                return postgres(find_place(self._home, sockets), sockets)
            case "generation" | "retrieval" | "evidence" as role:
                return python.worker(self._settings, role, events=self._processes.recorded("flower"))
            case "maintenance":
                return python.maintenance(self._settings)
            case "api":
                running = read_access(self._access_path) if self._processes.recorded("flower") else None
                return self._api(running)
            case "flower":
                return python.flower(self._settings, self._kept_access(), self._access_path)
        return python.supervisor(self._settings, name)

    def _api(self, flower: Access | None) -> Service:
        return python.api(self._settings, self._address_path, flower)

    def _kept_access(self) -> Access:
        access = read_access(self._access_path)
        if access is None:
            raise UnavailableError(f"{self._access_path} is gone, which says how Flower was started")
        return access

    def _flower_access(self, *, start: bool) -> Access | None:
        if self._processes.find("flower") is not None:
            return read_access(self._access_path)
        if not start and not self._processes.recorded("flower"):
            return None
        package_folder("flower", extra="monitoring")
        return new_access(self._access_path)

    @property
    def _restarts_path(self) -> Path:
        return self._home / "run" / "restarts.json"

    @property
    def _address_path(self) -> Path:
        return self._home / "api.json"

    @property
    def _access_path(self) -> Path:
        return self._home / "flower.json"

    def _is_external(self, name: str) -> bool:
        """Return whether the settings name such a server, and the stack has none left from before they did."""
        url = {"postgres": self._settings.database_url, "redis": self._settings.broker_url}.get(name)
        return url is not None and not self._processes.recorded(name)

    def _status(self, name: str, restarts: Restarts, *, supervised: bool) -> Status:
        log = self.log(name)
        process = self.find(name)
        if process is not None:
            with suppress(psutil.NoSuchProcess):
                # Where it ends while it is looked at, it counts as dead below.
                return self._running(name, process, log, restarts)
        if self._is_external(name):
            return Status(name=name, state=State.EXTERNAL)
        if not self._processes.recorded(name):
            if supervised and name in ON_DEMAND:
                return Status(name=name, state=State.WAITING)
            return Status(name=name, state=State.STOPPED, log=log if log.exists() else None)
        return Status(
            name=name,
            state=State.DIED,
            log=log,
            restarts=restarts.count,
            ended=restarts.reason if supervised else None,
            restart_seconds=restarts.seconds_left(time.monotonic()) if supervised else None,
        )

    def _running(self, name: str, process: psutil.Process, log: Path, restarts: Restarts) -> Status:
        service, uptime = self._service(name), uptime_of(process)
        problem = self._problem(service, process)
        starts = problem is not None and problem.starting
        shown = None if starts and uptime < SOON_SECONDS else problem
        return Status(
            name=name,
            state=State.STARTING if starts else State.RUNNING,
            pid=process.pid,
            uptime=uptime,
            memory=memory_of(process, children=name not in SUPERVISORS),
            log=log,
            problem=shown.said if shown else None,
            frozen=shown is not None and shown.restart,
            restarts=restarts.count,
            ended=restarts.reason,
        )

    def _problem(self, service: Service, process: psutil.Process) -> Problem | None:
        if process.status() == psutil.STATUS_STOPPED:
            return Problem(said="a signal has stopped it (SIGSTOP)", restart=True)
        problem = service.problem()
        if problem is None:
            self._processes.note_worked(service.name, process.pid)
            return None
        foreign = service.name in (*SERVERS, "api", "flower")  # the others tell by themselves that they are starting
        worked = self._processes.has_worked(service.name, process.pid)
        if problem.restart and foreign and not worked and uptime_of(process) < service.start_seconds:
            return replace(problem, starting=True, restart=False)
        return problem

    def _make_folders(self) -> None:
        try:
            self._home.mkdir(parents=True, exist_ok=True)
            for folder in (self._home / "run", self._home / "work", self._settings.socket_path):
                _make_private(folder)
        except OSError as error:
            raise InputError(
                f"{self._home} can't hold the stack's state ({error.strerror}: {error.filename}); change its "
                "permissions, or set COTRAIL_HOME to another folder"
            ) from error

    @contextmanager
    def _lock(self, wait: int = 0) -> Iterator[None]:
        """Let one command at a time start and stop services.

        wait: fcntl.LOCK_NB to raise BlockingIOError instead of waiting for another one.
        """
        self._make_folders()
        with (self._home / "run" / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | wait)
            yield


def _locked(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise UnavailableError(f"{folder} must be a folder of your own; remove it, or set COTRAIL_HOME to another home")
    folder.chmod(0o700)
