"""Background processes that outlive the command that started them.

A process is known by its record: process id and start, as ids are reused. The start counts from that of the machine,
which has an id of its own, because the clock may be set. Its *leftovers* are children that survived it when it was
killed, or processes whose record is gone. They are recognised by their program and working folder, or by a title that
only this service's processes have.
"""

import os
import pwd
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec
import psutil
from msgspec import Struct

from cotrail.common.printable_text import cut
from cotrail.errors import UnavailableError
from cotrail.workers.health import Problem
from cotrail.workers.logs import log_path, open_log

POLL_SECONDS = 0.02
"""The interval between two checks of a process that is starting."""

TICK_SECONDS = 0.05
"""How far two readings of one process's start may differ."""

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

KILL_SECONDS = 5.0
"""How long a killed process may take to disappear."""

LOG_LINES = 15
"""The number of a log's last lines that an error shows."""

LONGEST_REASON = 300
"""Characters of the reason why a service ended."""


def _nothing() -> None:
    """Prepare nothing, find no problem."""


class Service(Struct, frozen=True, kw_only=True):
    """Description of a background process: how it starts, when it is ready, how it stops."""

    name: str
    command: tuple[str, ...]

    folder: Path
    """Its working folder, which no other service shares."""

    environment: Mapping[str, str]
    """Its whole environment: it inherits nothing else."""

    ready: Callable[[], bool]
    """Returns whether it can do its work now."""

    problem: Callable[[], Problem | None] = _nothing
    """Returns what keeps it from its work: its health check."""

    prepare: Callable[[], None] = _nothing
    """Makes what it needs on disk, before each start."""

    transient: tuple[Path, ...] = ()
    """Files that mean something only while it runs: removed before it starts and after it ended."""

    title: str | None = None
    """A part of the command lines of all its processes, and of no others."""

    user: str | None = None
    """The system account it runs as, where that isn't the caller's."""

    start_seconds: float = 60
    """How long it may take to be ready."""

    stop_signal: signal.Signals = signal.SIGTERM
    """What asks it to end."""

    stop_seconds: float = 10
    """How long it may take to end before it is killed."""


class ProcessRecord(Struct, frozen=True, kw_only=True):
    """The process that a service runs as."""

    pid: int

    started: float
    """Seconds between the start of the machine and its own."""

    boot: str
    """The id of that start of the machine; empty where the system gives none."""

    command: tuple[str, ...]


class Processes:
    """The services of one home: records in `run`, logs in `logs`."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.run = home / "run"
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def log(self, name: str) -> Path:
        """Return the path of a service's log."""
        return log_path(self._home, name)

    def recorded(self, name: str) -> bool:
        """Return whether the service was started and not stopped since; it may have died."""
        return self._record_path(name).exists()

    def find(self, name: str) -> psutil.Process | None:
        """Return the recorded process of a service, if it is alive."""
        record = self._read(name)
        if record is None:
            return None
        try:
            process = psutil.Process(record.pid)
            same = record.boot == _boot() and abs(_started(process) - record.started) < TICK_SECONDS
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.Error:
            return None

    def seconds_since_start(self, name: str) -> float:
        """Return how long ago the recorded process was started; 0 where its record can't be read."""
        record = self._read(name)
        return 0.0 if record is None else time.time() - psutil.boot_time() - record.started

    def ending(self, name: str) -> str | None:
        """Return how a dead service ended; None where another process started it, as only a parent is told."""
        child, record = self._children.get(name), self._read(name)
        if child is None or record is None or child.pid != record.pid:
            return None
        code = child.wait(KILL_SECONDS)
        if code < 0:
            return signal.Signals(-code).name
        return cut(": ".join([f"exit code {code}", *self._last_lines(name, 1)]), LONGEST_REASON)

    def start(self, *services: Service) -> None:
        """Start those that don't run, all at once, and wait until each is ready.

        Raises UnavailableError where one ends instead, or isn't ready in time, after ending it; it counts as dead then.
        """
        started = [(service, self.find(service.name) or self.launch(service)) for service in services]
        for service, process in started:
            try:
                self._wait(service, process)
            except UnavailableError:
                self._ask_to_end(service)
                self._end(service)
                raise

    def stop(self, *services: Service) -> bool:
        """Stop them, all at once, with their leftovers; returns whether there was something to stop."""
        ending = [process for service in services if (process := self._ask_to_end(service))]
        killed = [self._end(service) for service in services]
        _remove(tuple(self._record_path(service.name) for service in services))
        return bool(ending) or any(killed)

    def kill(self, service: Service, *, children: bool) -> None:
        """End a service at once; its record stays, so that it counts as dead."""
        process = self.find(service.name)
        if process is not None:
            with suppress(psutil.NoSuchProcess):
                _kill([process, *(process.children(recursive=True) if children else ())])

    def _record_path(self, name: str) -> Path:
        return self.run / f"{name}.json"

    def launch(self, service: Service) -> psutil.Process:
        """Start one that doesn't run, without waiting until it is ready."""
        _kill(leftovers(service))
        _remove(service.transient)
        service.prepare()
        service.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open_log(self.log(service.name)) as log:
            child = _spawn(service, log)
        # The caller may outlive the child, as a test does, and would leave it a zombie.
        threading.Thread(target=child.wait, daemon=True).start()
        self._children[service.name] = child
        try:
            process = psutil.Process(child.pid)
            record = ProcessRecord(pid=process.pid, started=_started(process), boot=_boot(), command=service.command)
            write_json(self._record_path(service.name), record)
        except (psutil.Error, OSError) as error:
            child.kill()
            raise UnavailableError(f"{service.name} can't be started: {error}") from error
        return process

    def _ask_to_end(self, service: Service) -> psutil.Process | None:
        process = self.find(service.name)
        if process is not None:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(service.stop_signal)
        return process

    def _end(self, service: Service) -> bool:
        process = self.find(service.name)
        if process is not None:
            _wait_for_end([process], service.stop_seconds)
        left = leftovers(service)
        _kill(left)
        _remove(service.transient)
        return bool(left)

    def _read(self, name: str) -> ProcessRecord | None:
        try:
            return msgspec.json.decode(self._record_path(name).read_bytes(), type=ProcessRecord)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def _wait(self, service: Service, process: psutil.Process) -> None:
        deadline = time.monotonic() + service.start_seconds
        while not service.ready():
            if not alive(process):
                raise UnavailableError(f"{service.name} ended as it started. {self._tail(service.name)}")
            if time.monotonic() > deadline:
                problem = service.problem()
                why = f": {problem.said}" if problem else ""
                after = f"after {service.start_seconds:g} seconds{why}"
                raise UnavailableError(f"{service.name} wasn't ready {after}. {self._tail(service.name)}")
            time.sleep(POLL_SECONDS)

    def _tail(self, name: str) -> str:
        return "\n".join([f"The end of {self.log(name)}:", *self._last_lines(name, LOG_LINES)])

    def _last_lines(self, name: str, count: int) -> list[str]:
        log = self.log(name)
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return [line for line in lines if line.strip()][-count:]


def leftovers(service: Service) -> list[psutil.Process]:
    """Return all living processes of a service, recorded or not."""
    return [process for process in psutil.process_iter() if process.pid != os.getpid() and _belongs(process, service)]


def alive(process: psutil.Process) -> bool:
    """Return whether a process still runs; a zombie, as in a container without init, doesn't."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for_an_end(pids: Iterable[int], seconds: float) -> None:
    """Wait until one of these processes has ended, whoever started them, and no longer than so many seconds."""
    if sys.platform != "linux":
        time.sleep(seconds)
        return
    with ExitStack() as opened:
        ends = select.poll()
        for pid in pids:
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                return
            except OSError:  # as in a container that forbids the call
                time.sleep(seconds)
                return
            opened.callback(os.close, descriptor)
            ends.register(descriptor, select.POLLIN)
        ends.poll(seconds * 1000)


def credentials(user: str | None) -> dict[str, Any]:
    """Return the arguments that make `subprocess` run a command as that account."""
    if user is None:
        return {}
    account = pwd.getpwnam(user)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def write_json(path: Path, value: Any) -> None:
    """Replace a file, so that other processes read either the former or the new one as a whole."""
    temporary = path.with_suffix(".new")
    temporary.write_bytes(msgspec.json.encode(value))
    temporary.replace(path)


def _started(process: psutil.Process) -> float:
    """Return the seconds between the start of the machine and that of the process, whatever the clock says now."""
    return process.create_time() - psutil.boot_time()


def _boot() -> str:
    return BOOT_ID.read_text().strip() if BOOT_ID.exists() else ""


def _belongs(process: psutil.Process, service: Service) -> bool:
    try:
        program = Path(service.command[0]).resolve().name
        if service.title is not None:
            return process.name() == program and service.title in " ".join(process.cmdline())
        return Path(process.cwd()) == service.folder.resolve() and Path(process.exe()).name == program
    except psutil.Error:
        return False


def _spawn(service: Service, log: Any) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            service.command,
            cwd=service.folder,
            env=dict(service.environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=0o077,
            **credentials(service.user),
        )
    except OSError as error:
        raise UnavailableError(f"{service.name} can't be started: {error}") from error


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    stuck = [process.pid for process in _wait_for_end(processes, KILL_SECONDS)]
    if stuck:
        raise UnavailableError(f"these processes can't be killed: {stuck}; end them, then try again")


def _wait_for_end(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Return those that are still alive after so many seconds."""
    deadline = time.monotonic() + seconds
    while (living := [process for process in processes if alive(process)]) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return living


def _remove(paths: tuple[Path, ...]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
