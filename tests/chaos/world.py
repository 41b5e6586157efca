"""The victims of faults: the processes of one home, and the supervisor that brings them back."""

import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from subprocess import DEVNULL
from typing import Any

import psutil
import psycopg
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from cotrail.configuration.settings import Settings
from cotrail.workers.stack.process import Processes, alive
from tests.chaos.beside import Beside, Search, begin_model
from tests.chaos.disk import Disk
from tests.chaos.home import Home
from tests.chaos.model import Mood
from tests.chaos.schedule import MODEL, PROCESSES, SEARCH, SERVERS
from tests.chaos.wires import Wires
from tests.conftest import wait_until
from tests.faults import inner
from tests.faults.stacked import ROOT, SAMPLE, UNSUPERVISED, Cotrail, environment_of

LOOK_SECONDS = 0.3
"""Seconds between two looks of the supervisor for dead processes."""


class World:
    """A home, its stack, its model server, and its search server if it has one.

    variables: what the stack finds in its environment besides.
    search: where the corpus is; None for a folder.
    held: what a fault keeps down for now; everything else that has died is brought back by `supervise`.
    """

    def __init__(
        self, home: Home, cotrail: Cotrail, disk: Disk, variables: Mapping[str, str] = {}, search: Search | None = None
    ) -> None:
        self.home = home
        self.cotrail = cotrail
        self.disk = disk
        self.settings = Settings(home=home.path, database_url=None, broker_url=None)
        self.search = search
        self.wires = Wires(home.path, self.settings.socket_path, search.port if search else None)
        self.held: Counter[str] = Counter()
        self.failed_ups: list[str] = []
        self._beside = {MODEL: Beside(partial(begin_model, home))}
        if search is not None:
            self._beside[SEARCH] = Beside(search.begin)
        self._environment = environment_of(home.path, variables)
        self._over = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise, name="supervisor", daemon=True)

    def start(self) -> None:
        """Starts everything, with the sample indexed, and keeps it running."""
        self.start_model()
        if self.search is not None:
            self._beside[SEARCH].start()
            wait_until(self.search.answers, "the search server answers")
        self.cotrail("index", str(SAMPLE / "corpus.jsonl"), "--name", "sample")
        self.cotrail("up")
        self._supervisor.start()

    def end(self) -> None:
        """Ends the processes outside the stack."""
        self._over.set()
        if self._supervisor.is_alive():
            self._supervisor.join()
        for each in self._beside.values():
            each.end()
        self.wires.close()

    def processes(self, name: str) -> list[psutil.Process]:
        """A process and its children, parents first; empty if it isn't alive."""
        beside = self._beside.get(name)
        first = beside.find() if beside else Processes(self.home.path).find(name)
        with suppress(psutil.NoSuchProcess):
            return [first, *first.children(recursive=True)] if first and alive(first) else []
        return []

    def dead(self) -> set[str]:
        """The processes that should run and don't."""
        names = [name for name in PROCESSES if name != SEARCH or self.search]
        return {name for name in names if self.held[name] <= 0 and not self.processes(name)}

    def be(self, mood: Mood) -> None:
        """Puts the model into a mood."""
        written = self.home.mood.with_suffix(".new")
        written.write_text(mood)
        written.replace(self.home.mood)

    def panic(self, name: str) -> Callable[[], None]:
        """Makes all executions of a worker panic; returns the function that ends that."""
        file = inner.folder(self.home.path) / f"panic.{name}"
        file.touch()
        return partial(file.unlink, missing_ok=True)

    def clock(self, name: str, seconds: float) -> None:
        """Sets a process's clock wrong by this many seconds."""
        (inner.folder(self.home.path) / f"clock.{name}").write_text(str(seconds))

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Rows of the store, read on a connection of its own; raises psycopg.Error if the store doesn't answer."""
        options = f"host={self.settings.socket_path} user=postgres dbname=cotrail connect_timeout=2"
        with psycopg.connect(options, application_name="chaos", autocommit=True) as connection:
            return connection.execute(statement.encode()).fetchall()

    def count(self, statement: str) -> int | None:
        """The number that a query returns; None if the store doesn't answer."""
        try:
            ((found,),) = self.query(statement)
        except psycopg.Error:
            return None
        return int(found)

    def table(self, statement: str) -> dict[str, Any]:
        """A query's second column by its first."""
        return dict(self.query(statement))

    def redis(self) -> "Redis":
        """A connection to Redis with a short timeout and no retries."""
        socket = str(self.settings.socket_path / "redis.sock")
        return Redis(unix_socket_path=socket, socket_timeout=2, retry=Retry(NoBackoff(), 0))

    def _supervise(self) -> None:
        """Restarts dead processes repeatedly, as systemd would."""
        while not self._over.wait(LOOK_SECONDS):
            dead = self.dead()
            for name in self._beside.keys() & dead:
                self._beside[name].start()
            if dead - self._beside.keys():
                self._up()

    def _up(self) -> None:
        """Runs `cotrail up`; ends it if a server dies that the workers wait for: the next one starts it too."""
        up = subprocess.Popen(
            [*UNSUPERVISED, "up"], env=self._environment, cwd=ROOT, stderr=subprocess.PIPE, stdout=DEVNULL
        )
        ran: set[str] = set()
        while up.poll() is None:
            running = {name for name in SERVERS if self.processes(name)}
            if ran - running:
                up.kill()
            ran |= running
            self._over.wait(LOOK_SECONDS)
        _, said = up.communicate()
        if up.returncode:  # PostgreSQL may be frozen, or its disk full
            self.failed_ups.append(said.decode(errors="replace"))

    def start_model(self) -> None:
        """Starts the model server, which isn't part of the stack."""
        self._beside[MODEL].start()


def signal_all(processes: list[psutil.Process], number: signal.Signals) -> None:
    """Sends a signal to those that still run."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
