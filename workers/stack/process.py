"""Background processes that outlive the command that started them.

A process is known by its record: process id and start, as ids are reused. The start counts from that of the machine,
which has an id of its own, because the clock may be set. Its *leftovers* are children that survived it when it was
killed, or processes whose record is gone. They are recognised by their program and working folder, or by a title that
only this service's processes have.
"""

import operator
import os
import pwd
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import psutil
from msgspec import Struct

from cotrail.common.printable_text import cut
from cotrail.errors import UnavailableError
from cotrail.workers.health import Problem
from cotrail.workers.logs import log_path, open_log
from cotrail.workers.stack.status import STALL_SECONDS, Life

FormT = TypeVar("FormT")

POLL_SECONDS = 0.02
"""The interval between two checks of a process that ends, and the first one of a process that starts."""

LONGEST_POLL_SECONDS = 0.5
"""The longest interval between two checks of a process that starts: where many start, checks are to cost little."""

TICK_SECONDS = 0.05
"""How far two readings of one process's start may differ."""

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

KILL_SECONDS = 5.0
"""How long a killed process may take to disappear."""

LOG_END = 4096
"""Bytes at a log's end in which its last line is looked for."""

LONGEST_REASON = 300
"""Characters of the reason why a service ended, and of a log's line that is shown."""


def silent(said: str) -> None:
    """Show nobody what is being waited for."""


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

    listen: Callable[[], socket.socket] | None = None
    """Makes the socket on which it is to listen, and which it is handed by its option `--fd`."""

    code: Callable[[], str] = lambda: ""
    """Returns the identity of the code on disk that it would load now."""

    problem: Callable[[], Problem | None] = lambda: None
    """Returns what keeps it from its work: its health check."""

    prepare: Callable[[], None] = lambda: None
    """Makes what it needs on disk, before each start."""

    transient: tuple[Path, ...] = ()
    """Files that mean something only while it runs: removed before it starts and after it ended."""

    title: str | None = None
    """A part of the command lines of all its processes, and of no others."""

    user: str | None = None
    """The system account it runs as, where that isn't the caller's."""

    start_seconds: float = 1800
    """How long it may take to be ready while it shows life."""

    stall_seconds: float = STALL_SECONDS
    """How long it may show no life before it is ready."""

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

    code: str = ""
    """The identity of the code that it has loaded."""


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
        """Return how a dead service ended; None where another process started it, as only a parent learns it."""
        child, record = self._children.get(name), self._read(name)
        if child is None or record is None or child.pid != record.pid:
            return None
        # It is dead: this waits for nothing but the thread that reaps it.
        code = child.wait(KILL_SECONDS)
        if code < 0:
            return signal.Signals(-code).name
        return cut(": ".join(filter(None, [f"exit code {code}", self._last_line(name)])), LONGEST_REASON)

    def start(self, *services: Service) -> None:
        """Start those that don't run, or that run other code, and wait until each is ready, as `starting` does."""
        with self.starting() as start:
            start(*services)

    @contextmanager
    def starting(self, waiting: Callable[[str], None] = silent) -> Iterator[Callable[..., None]]:
        """A function that starts services, all at once, and waits until each is ready.

        Those that run go on, unless they have loaded other code than there is now: these are replaced.

        waiting: called repeatedly with what is being waited for. The function raises UnavailableError where a service
        ends instead, or is given up, after ending it. Whatever leaves the block ends what was started in it, but for
        services that had been started before: those that died again count as dead, and the others go on.
        """
        new: list[Service] = []
        code_of = cache(operator.call)  # all of one package have the same, which takes a while to read

        def start(*services: Service) -> None:
            started = []
            for service in services:
                process, code = self.find(service.name), code_of(service.code)
                record = self._read(service.name)
                if process is not None and (record.code if record else "") != code:
                    self.end(service)
                    process = None
                if process is None:
                    if not self.recorded(service.name):
                        new.append(service)
                    process = self.launch(service, code)
                started.append((service, process))
            for service, process in started:
                try:
                    self._wait(service, process, waiting)
                except UnavailableError:
                    self.end(service)
                    raise

        try:
            yield start
        except BaseException:
            # In reverse order: what needs others ends before them.
            for service in reversed(new):
                self.stop(service)
            raise

    def stop(self, *services: Service) -> bool:
        """Stop them, all at once, with their leftovers; returns whether there was something to stop."""
        ending = [process for service in services if (process := self._ask_to_end(service))]
        killed = [self._end(service) for service in services]
        _remove(tuple(path(service.name) for service in services for path in (self._record_path, self._worked_path)))
        return bool(ending) or any(killed)

    def end(self, *services: Service) -> None:
        """Stop them, all at once, with their leftovers; their records stay, so that they count as dead."""
        for service in services:
            self._ask_to_end(service)
        for service in services:
            self._end(service)

    def kill(self, service: Service, *, children: bool) -> None:
        """End a service at once; its record stays, so that it counts as dead."""
        process = self.find(service.name)
        if process is not None:
            with suppress(psutil.NoSuchProcess):
                _kill([process, *(process.children(recursive=True) if children else ())])

    def note_worked(self, name: str, pid: int) -> None:
        """Keep that this process of a service has done its work, and so isn't starting any more."""
        if not self.has_worked(name, pid):
            with suppress(OSError):  # as on a full disk: it counts as starting a little longer then
                self._worked_path(name).write_text(str(pid))

    def has_worked(self, name: str, pid: int) -> bool:
        """Return whether that was noted."""
        try:
            return self._worked_path(name).read_text() == str(pid)
        except OSError:
            return False

    def _worked_path(self, name: str) -> Path:
        return self.run / f"{name}.worked"

    def _record_path(self, name: str) -> Path:
        return self.run / f"{name}.json"

    def launch(self, service: Service, code: str | None = None) -> psutil.Process:
        """Start one that doesn't run, without waiting until it is ready.

        code: what `service.code` has returned just now, None where it wasn't asked.
        """
        # Before it loads any: what is changed meanwhile makes it count as another's.
        code = service.code() if code is None else code
        # Children of one that was killed may still hold its port, its files or its data.
        _kill(leftovers(service))
        _remove((*service.transient, self._worked_path(service.name)))
        service.prepare()
        service.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open_log(self.log(service.name)) as log, ExitStack() as opened:
            listener = opened.enter_context(service.listen()) if service.listen else None
            child = _spawn(service, log, () if listener is None else (listener.fileno(),))
        # The caller may outlive the child, as a test does, and would leave it a zombie.
        threading.Thread(target=child.wait, daemon=True).start()
        self._children[service.name] = child
        try:
            process = psutil.Process(child.pid)
            record = ProcessRecord(
                pid=process.pid, started=_started(process), boot=_boot(), command=service.command, code=code
            )
            write_json(self._record_path(service.name), record)
        except (psutil.Error, OSError) as error:
            # Without its record nobody would find it again, neither to stop it nor to see that it runs.
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
        return read_json(self._record_path(name), ProcessRecord)

    def _wait(self, service: Service, process: psutil.Process, waiting: Callable[[str], None]) -> None:
        began, life, pause = time.monotonic(), Life(process, self.log(service.name)), POLL_SECONDS
        while not service.ready():
            waited, still = time.monotonic() - began, life.still_for()
            if not alive(process):
                how = self.ending(service.name) or self._last_line(service.name)
                raise UnavailableError(f"{service.name} ended as it started ({how}); {self._advice(service)}")
            if still > service.stall_seconds:
                raise UnavailableError(self._given_up(service, f"has shown no life for {still:.0f} s"))
            if waited > service.start_seconds:
                raise UnavailableError(self._given_up(service, f"isn't ready after {waited:.0f} s"))
            last = self._last_line(service.name)
            waiting(f"{service.name} is starting, for {waited:.0f} s{f': {last}' if last else ''}")
            time.sleep(pause)
            pause = min(1.5 * pause, LONGEST_POLL_SECONDS)
        self.note_worked(service.name, process.pid)

    def _given_up(self, service: Service, why: str) -> str:
        problem = service.problem()
        said = "; ".join(filter(None, [problem.said if problem else "", self._last_line(service.name)]))
        return f"{service.name} {why}, and was ended ({said}); {self._advice(service)}"

    def _advice(self, service: Service) -> str:
        return f"read {self.log(service.name)}, then `cotrail up` again"

    def _last_line(self, name: str) -> str:
        """Return what a service logged last, as far as an error shows it; empty where it logged nothing."""
        try:
            with self.log(name).open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_END))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        return cut(next((line.strip() for line in reversed(lines) if line.strip()), ""), LONGEST_REASON)


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
    """Wait until one of these processes has ended, no matter who started them, and no longer than so many seconds."""
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


def read_json(path: Path, form: type[FormT]) -> FormT | None:
    """Return what is in a file; None where there is none, or it holds something else."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=form)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


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


def _spawn(service: Service, log: Any, sockets: tuple[int, ...]) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            [*service.command, *(f"--fd={each}" for each in sockets)],
            pass_fds=sockets,
            cwd=service.folder,
            env=dict(service.environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # Ctrl-C in the terminal of `cotrail up` is to end the command alone.
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
    deadline = time.monotonic() + seconds
    while (living := [process for process in processes if alive(process)]) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return living


def _remove(paths: tuple[Path, ...]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
