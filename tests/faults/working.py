"""Workers and servers of one test; the workers are restarted whenever they end, as a supervisor would."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from msgspec.structs import replace
from sqlalchemy import Engine, text

from benchmarks.contenders.cotrail import submission
from cotrail.configuration.settings import Settings
from cotrail.core.questions import Question
from cotrail.models.commands.submission import submit
from cotrail.models.schema.migrating import migrate
from cotrail.systems.registry import find_system
from cotrail.workers.health import VARIABLE
from cotrail.workers.stack.stack import Stack
from tests.clusters import lay_cluster
from tests.conftest import wait_until
from tests.faults.stacked import ROOT

QUICK = {
    "COTRAIL_LEASE_SECONDS": "6",  # long enough that no process loses one because the machine is slow
    "COTRAIL_HEARTBEAT_SECONDS": "0.5",
    "COTRAIL_SWEEP_SECONDS": "0.2",
    "COTRAIL_RESEND_SECONDS": "1",
    "COTRAIL_MAX_ATTEMPTS": "3",
    "COTRAIL_MODEL": "costless",
}
SLOTS = 8
QUEUES = "reason,read,retrieve"
OPTIONS = f"-P threads -c {SLOTS} -n frail@%h -l INFO --without-gossip --without-mingle"
COMMANDS = {
    "maintenance": ["-m", "cotrail.workers.maintenance"],
    "worker": ["-m", "celery", "-A", "tests.faults.frail_worker", "worker", "-Q", QUEUES, *OPTIONS.split()],
}


class Workplace:
    """A PostgreSQL, a Redis, a maintenance process and a worker of `SLOTS` threads."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.settings = Settings(home=home, database_url=None, broker_url=None)
        self.stack = Stack(self.settings)
        self.starts = dict.fromkeys(COMMANDS, 0)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._over = threading.Event()
        self._keepers = [threading.Thread(target=self._keep, args=(name,)) for name in COMMANDS]

    def start(self) -> None:
        lay_cluster(self.home)
        self.stack.start_servers()
        migrate(self.settings.database)
        for keeper in self._keepers:
            keeper.start()
        wait_until(lambda: all((self.home / f"{name}.ready").exists() for name in COMMANDS), "workers are ready")

    def stop(self) -> None:
        self._over.set()
        for process in self._running.values():
            process.kill()
        for keeper in self._keepers:
            keeper.join()
        self.stack.remove()

    def kill_server(self, name: str) -> None:
        """`kill -9`; `stack.start_servers` brings it back."""
        pid = next(status.pid for status in self.stack.status() if status.name == name)
        server = psutil.Process(pid)
        server.kill()
        server.wait(20)

    def end(self, name: str) -> None:
        """Tells a process to end, and waits until it has."""
        process = self._running[name]
        process.terminate()
        process.wait(20)

    def log(self, name: str) -> str:
        return (self.home / f"{name}.log").read_text()

    def environment(self) -> dict[str, str]:
        return {**os.environ, **QUICK, "COTRAIL_HOME": str(self.home)}

    def _keep(self, name: str) -> None:
        environment = {**self.environment(), VARIABLE: str(self.home / f"{name}.ready")}
        while not self._over.is_set():
            with (self.home / f"{name}.log").open("ab") as log:
                command = [sys.executable, *COMMANDS[name]]
                process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
            self._running[name] = process
            self.starts[name] += 1
            process.wait()


@contextmanager
def workplace() -> Iterator[Workplace]:
    """Starts one; removes it at the end."""
    place = Workplace(Path(tempfile.mkdtemp(prefix="cw-")))
    try:
        place.start()
        yield place
    finally:
        place.stop()
        shutil.rmtree(place.home)


def ask(engine: Engine, run: str, asked: int, **changes: Any) -> None:
    questions = [Question(id=f"q{n}", text=f"Where was builder {n} born?") for n in range(asked)]
    submit(engine, replace(submission(), id=run, **changes), questions, find_system)


def outcomes(engine: Engine, run: str) -> dict[str, int]:
    query = "SELECT outcome, count(*) FROM attempts JOIN steps ON id = step_id WHERE run_id = :run GROUP BY outcome"
    with engine.begin() as connection:
        return {row[0]: row[1] for row in connection.execute(text(query), {"run": run})}


def statuses(engine: Engine, run: str) -> set[str]:
    query = "SELECT DISTINCT status FROM questions WHERE run_id = :run"
    with engine.begin() as connection:
        return set(connection.execute(text(query), {"run": run}).scalars())
