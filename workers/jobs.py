"""Jobs carried out alongside maintenance: each in a process of its own, so that none hurts another, or this process.

Every maintenance process takes jobs, also one that only stands by. The process of a job ends when its standard input
closes, and so with this one, however that ends; another one then takes the job up once its lease has run out.
"""

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from types import MappingProxyType

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from cotrail.models.execution.jobs import Held, claim_job, release_job, renew_jobs

logger = logging.getLogger(__name__)

MODULE = "cotrail.services.runs.job_process"
"""What carries a job out; a process of its own, and so no import."""

AT_ONCE: Mapping[str, int] = MappingProxyType({"index": 1, "experiment": 8})
"""How many jobs of a kind a process carries out at once: indexing computes, while experiments wait for their runs."""

PAUSE_AFTER_FAILURE = 5.0
"""Seconds until a job whose process ended without a result is carried out again."""


class JobRunner:
    """Claims jobs and watches their processes, in a thread.

    lease: seconds for which a job is claimed; pause: between two looks at the processes and for new jobs.
    """

    def __init__(self, engine: Engine, lease: float, pause: float) -> None:
        self._engine = engine
        self._lease = lease
        self._pause = pause
        self._name = f"{socket.gethostname()}:{os.getpid()}"
        self._processes: dict[Held, tuple[str, subprocess.Popen[bytes]]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)

    def start(self) -> None:
        """Begin to take jobs."""
        self._thread.start()

    def stop(self) -> None:
        """End the processes and give their jobs back."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._pause):
            try:
                self.look()
            except SQLAlchemyError as error:
                # The leases may run out meanwhile; what a process records then counts only if nobody claimed its job.
                logger.warning("jobs can't be looked after, trying again: %s", error)
        self._give_back()

    def look(self) -> None:
        """Note which processes have ended, end those of jobs that aren't held any more, and begin new ones."""
        self._reap()
        if self._processes:
            with self._engine.begin() as connection:
                held = renew_jobs(connection, list(self._processes), self._lease)
            for lost in self._processes.keys() - held:
                logger.info("the job %s was cancelled, has ended, or was taken over", lost[0])
                self._end(lost)
        while kinds := self._kinds_with_room():
            with self._engine.begin() as connection:
                job = claim_job(connection, kinds, self._name, self._lease)
            if job is None:
                return
            self._begin((job.id, job.epoch), job.kind)

    def _begin(self, job: Held, kind: str) -> None:
        logger.info("the job %s begins", job[0])
        command = [sys.executable, "-m", MODULE, job[0], str(job[1])]
        # In a session of its own: Ctrl-C in a terminal reaches this process alone, which then gives the job back.
        started = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        self._processes[job] = (kind, started)

    def _reap(self) -> None:
        for job, (_, process) in list(self._processes.items()):
            if process.poll() is None:
                continue
            self._end(job)
            if process.returncode != 0:
                logger.warning("the process of the job %s ended with %s", job[0], process.returncode)
                with self._engine.begin() as connection:
                    release_job(connection, job, pause=PAUSE_AFTER_FAILURE, failed=True)

    def _end(self, job: Held) -> None:
        _, process = self._processes.pop(job)
        if process.poll() is None:
            # The whole group, which its session made: a job may have started processes of its own.
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdin is not None:
            process.stdin.close()

    def _give_back(self) -> None:
        for job in list(self._processes):
            self._end(job)
            try:
                with self._engine.begin() as connection:
                    release_job(connection, job)
            except SQLAlchemyError as error:
                logger.warning("the job %s can't be given back; its lease will run out: %s", job[0], error)

    def _kinds_with_room(self) -> list[str]:
        running = [kind for kind, _ in self._processes.values()]
        return [kind for kind, most in AT_ONCE.items() if running.count(kind) < most]
