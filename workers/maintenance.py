"""The maintenance process: admits questions, sends the steps that are due, recovers those that got lost, and has jobs
carried out.

`cotrail worker maintenance` starts it. Any number may run; one is the leader and works, the others stand by
(`cotrail.workers.leading`).
"""

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType, MappingProxyType

from celery import Celery
from psycopg.errors import DeadlockDetected, IdleSessionTimeout, LockNotAvailable
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from cotrail.common.log_formatting import print_safely
from cotrail.configuration.checks import refusing
from cotrail.configuration.extensions import brings
from cotrail.configuration.files import read_webhooks
from cotrail.configuration.settings import Settings, settings
from cotrail.core.actions.registry import KINDS
from cotrail.core.results import Failure
from cotrail.errors import InputError, OutdatedError
from cotrail.models.commands.control import being_cancelled, cancelling
from cotrail.models.commands.retrying import end_unbegun
from cotrail.models.execution import recovery
from cotrail.models.execution.admission import admit
from cotrail.models.execution.jobs import Held, claim_job, release_job, renew_jobs
from cotrail.models.execution.ledger import Ledger
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.database import connect, reason_of, unanswered
from cotrail.systems.registry import find_system
from cotrail.tasks.broker_health import Belonging, policy_problem
from cotrail.tasks.routing import BROKER_ERRORS, queues_of, send
from cotrail.workers.celery_app import app
from cotrail.workers.health import announce, want, withdraw
from cotrail.workers.housekeeping import Closing, Retention, Stopping, SummaryRunner, Watcher
from cotrail.workers.leading import Backoff, Session, session
from cotrail.workers.logs import keep_bounded
from cotrail.workers.webhooks import Webhooks

# Jobs carried out alongside maintenance: each in a process of its own, so that none hurts another, or this process.

logger = logging.getLogger(__name__)

MODULE = "cotrail.services.runs.job_process"
"""What carries a job out; a process of its own, and so no import."""

AT_ONCE: Mapping[str, int] = MappingProxyType({"index": 1, "experiment": 8})
"""How many jobs of a kind a process carries out at once: indexing computes, while experiments wait for their runs."""

PAUSE_AFTER_FAILURE = 5.0
"""Seconds until a job whose process ended without a result is carried out again."""


class JobRunner(Watcher):
    """Claims jobs and watches their processes; in the end they are given back.

    lease: seconds for which a job is claimed, where nobody looks meanwhile; pause: between two looks.
    """

    def __init__(self, engine: Engine, lease: float, pause: float) -> None:
        super().__init__("jobs", pause)
        self._engine = engine
        self._lease = lease
        self._name = f"{socket.gethostname()}:{os.getpid()}"
        self._processes: dict[Held, tuple[str, subprocess.Popen[bytes]]] = {}

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
        command = [sys.executable, "-P", "-m", MODULE, job[0], str(job[1])]
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

    def end(self) -> None:
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


MOST_SENT = 1000
"""The largest number of unsent steps of a kind sent in one sweep."""

IDLE_SWEEPS = 5
"""How many times longer the pause between two sweeps is while no run is under way; a notification ends it."""

MOST_ADMISSIONS = 10
"""How many times questions are admitted between two sweeps at most; fewer, by backoff, while none may begin."""

LONGEST_PAUSE = 30.0
"""The longest pause, in seconds, after an unforeseen error."""

CANCELLING_SECONDS = 0.2
"""How long completing interrupted cancellations may take after each sweep, not counting the last chunk."""

LEFT_ALONE = 2
"""The number of sweeps for which a process that can't send leaves the lead to others."""


class BrokerAwayError(OSError):
    """The broker takes no messages."""


class Maintenance:
    """Sweeps, each when it is time or when a notification says that there is work."""

    def __init__(self, settings: Settings, app: Celery) -> None:
        self.settings = settings
        self.app = app
        self.stopping = threading.Event()
        self._changed: set[str] = set()
        self._admitting = Backoff(settings.sweep_seconds / MOST_ADMISSIONS, settings.sweep_seconds)
        self.engine: Engine = connect(settings.database, by_index=True)
        name, lease = f"maintenance:{os.getpid()}", settings.lease_seconds
        self.ledger = Ledger(self.engine, name, lease, find_system, brings(allowed=settings.stored_systems))
        self.webhooks = Webhooks(self.engine, read_webhooks(settings.home / "webhooks.toml"))
        self.closing = Closing(self.engine, self.webhooks.closed)
        self.belonging = Belonging(self.engine, settings.broker, settings.broker_prefix)
        self.retention = Retention(self.engine, settings.retention_days)
        self.stopping_rules = Stopping(self.engine)
        self._judging_from = 0.0
        self._found_culprit = False
        self._working = False

    def run(self) -> None:
        """Sweep until asked to stop. Errors are retried; only what a person has to fix ends it."""
        again = Backoff(self.settings.sweep_seconds, LONGEST_PAUSE)
        while not self.stopping.is_set():
            try:
                self.engine.connect().close()  # raises InputError where a pooler keeps no sessions
                with session(self.engine, self.settings.sweep_seconds) as own:
                    # A server that has just started has leases that nobody could renew while it was away.
                    self._judge_after(self.settings.lease_seconds - own.seconds_up())
                    self._attend(own, again)
            except (InputError, OutdatedError):
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the next sweep may succeed
                self.stopping.wait(self._pause_after(error, again))

    def sweep(self, stay: Callable[[], None] = lambda: None) -> int:
        """Recover and send steps, and begin to close runs; returns how many messages it sent.

        stay: called between its parts, each of which may take long, to keep the lead. Raises BrokerAwayError.
        """
        # First, as what is taken back counts as unsent, and goes out with this same sweep.
        due = self._take_back() if time.monotonic() >= self._judging_from else []
        stay()
        due += self._take()
        stay()
        with self.engine.begin() as connection:
            suspects = recovery.take_suspects(connection, at_once=self._found_culprit)
        # Kept for a later sweep as long as suspects are under way and none can be sent.
        self._found_culprit = self._found_culprit and not suspects
        due += suspects
        self.closing.start_due()
        stay()
        self.webhooks.start_due()
        stay()
        return _sent(due) + self.admit()

    def admit(self) -> int:
        """Admit as many questions as may begin now; returns how many messages it sent. Raises BrokerAwayError."""
        ending = end_unbegun(self.engine, self.stopping_rules.stopped())
        with self.engine.begin() as connection:
            admitted = admit(connection, ending)
        self._admitting.attempted(succeeded=bool(admitted))
        return _sent(admitted)

    def stop(self, *_: int | FrameType | None) -> None:
        """Have `run` return soon."""
        self.stopping.set()

    def _judge_after(self, seconds: float) -> None:
        """Expire no leases for so many seconds: while the database was away, no worker could renew its own."""
        self._judging_from = max(self._judging_from, time.monotonic() + seconds)

    def _take_back(self) -> list[Dispatch]:
        with self.engine.begin() as connection:
            expired = recovery.expire_leases(connection)
            poisoned = recovery.exhausted(connection, expired, self.settings.max_attempts) if expired else []
        if expired:
            logger.warning("%d steps were given back: their leases expired without a heartbeat", len(expired))
        return [message for messages in self._give_up(poisoned) for message in messages]

    def _pause_after(self, error: Exception, again: Backoff) -> float:
        """Log an error; returns how many seconds to wait before the next try."""
        if not unanswered(error):
            again.attempted(succeeded=False)
            logger.error("an unforeseen error, trying again: %s", reason_of(error), exc_info=error)
            self._announce(reason_of(error))
            return again.pause
        if isinstance(error, IdleSessionTimeout):  # only this process was cut off: workers could renew their leases
            logger.warning("a sweep took so long that the lead is lost: %s", reason_of(error))
        else:
            logger.warning("the database doesn't answer, trying again: %s", reason_of(error))
            self._judge_after(self.settings.lease_seconds)
        self._announce()
        return self.settings.sweep_seconds

    def _announce(self, problem: str = "") -> None:
        """Report how this process is, once it has begun to work."""
        if self._working:
            announce("maintenance", problem)

    def _attend(self, own: Session, again: Backoff) -> None:
        """Work while this process leads, and stand by while another does; reports after each round that it lives."""
        while not self.stopping.is_set():
            try:
                if own.lead():
                    self.belonging.lead()
                    self._sweep_out(own)
                    continue_cancelling(self.engine)
                    self.retention.remove_next()
                elif not self.belonging.check():
                    self.stopping.wait(self.settings.sweep_seconds)
                    continue
                self._working = True
                self._announce()
                again.attempted(succeeded=True)
                self._changed = self._wait(own)
            except BROKER_ERRORS as error:
                logger.warning("the broker doesn't answer, another process may try: %s", error)
                # Redis may be out of reach of this host alone; the next one to lead must be another process.
                own.resign()
                self._announce()
                self.stopping.wait(LEFT_ALONE * self.settings.sweep_seconds)

    def _wait(self, own: Session) -> set[str]:
        """Wait for the next sweep or a notification, and admit questions meanwhile; returns the runs notified of."""
        with self.engine.connect() as connection:
            idle = recovery.is_idle(connection)
        seconds = self.settings.sweep_seconds * (IDLE_SWEEPS if idle else 1)
        for _ in range(MOST_ADMISSIONS):
            woken = own.woken(seconds / MOST_ADMISSIONS)
            self._announce()
            if woken or self.stopping.is_set():
                return woken
            if own.leads and self._admitting.due and not idle:
                self.admit()
        return set()

    def _sweep_out(self, own: Session) -> None:
        began = time.monotonic()
        for run_id in self._changed:
            self._withdraw(run_id)
            self.stopping_rules.forget(run_id)
        sent = self.sweep(own.stay)
        if sent:
            logger.info("sent %d messages in %.3f s", sent, time.monotonic() - began)

    def _withdraw(self, run_id: str) -> None:
        """Remove the messages of a cancelled run from their queues, so that workers needn't read them."""
        with self.engine.begin() as connection:
            step_ids = recovery.cancelled_steps(connection, run_id)
        if step_ids:
            with self.app.connection_for_write() as broker:
                withdrawn = broker.default_channel.withdraw(step_ids)
            logger.info("%s is cancelled: %d of its messages are removed from their queues", run_id, withdrawn)

    def _give_up(self, step_ids: list[int]) -> list[list[Dispatch]]:
        if not step_ids:
            return []
        message = (
            "its executions ended without a result or a sign of life again and again, whatever ran at the same time; "
            "the workers' logs may say why"
        )
        logger.error("%d steps are set aside: %s", len(step_ids), message)
        self._found_culprit = True
        return self.ledger.give_up(step_ids, Failure(type="PoisonedStep", message=message))

    def _take(self) -> list[Dispatch]:
        with self.engine.begin() as connection:
            kinds = recovery.ready_kinds(connection, KINDS)
        want({KINDS[kind].role for kind in kinds})
        due: list[Dispatch] = []
        # Between the two transactions, as Redis may take seconds to answer, and none is to be open meanwhile.
        queued = self._queued(kinds) if kinds else {}
        with self.engine.begin() as connection:
            for kind in kinds:
                for queue, served in queues_of(kind).items():
                    lost = recovery.take_lost(connection, kind, queued[queue], self.settings.resend_seconds, served)
                    if lost:
                        logger.warning("%d messages of %s seem lost and are sent again", len(lost), queue)
                    due += lost
                due += recovery.take_unsent(connection, kind, MOST_SENT)
        return due

    def _queued(self, kinds: Sequence[str]) -> dict[str, int]:
        """Return how many messages the queues hold, over a pooled connection: opening one takes long."""
        with self.app.producer_or_acquire() as producer:
            queues = [queue for kind in kinds for queue in queues_of(kind)]
            return {queue: producer.channel.queue_declare(queue).message_count for queue in queues}


def _sent(messages: Sequence[Dispatch]) -> int:
    """Send messages; returns how many. Raises BrokerAwayError where the broker takes none."""
    sent = send(messages)
    if messages and not sent:
        raise BrokerAwayError(f"it took none of {len(messages)} messages")
    return sent


def continue_cancelling(engine: Engine) -> None:
    """Cancel the next questions of cancelled runs, where `cotrail cancel` was interrupted.

    The command itself may still be doing so: a chunk that it has locked is left to it.
    """
    until = time.monotonic() + CANCELLING_SECONDS
    with engine.begin() as connection:
        runs = being_cancelled(connection)
    for run_id in runs:
        try:
            for _ in cancelling(engine, run_id, tries=1):
                if time.monotonic() >= until:
                    return
        except OperationalError as error:
            if not isinstance(error.orig, DeadlockDetected | LockNotAvailable):
                raise


def main() -> None:
    """Run until SIGTERM or SIGINT."""
    withdraw()
    keep_bounded()
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s: %(levelname)s] %(message)s")
    print_safely(*logging.getLogger().handlers)
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # it logs addresses, and that of a webhook may be a secret
    with refusing():
        _work()


def _work() -> None:
    maintenance = Maintenance(settings(), app)
    if problem := policy_problem(settings().broker):
        logger.warning("%s", problem)
    signal.signal(signal.SIGTERM, maintenance.stop)
    signal.signal(signal.SIGINT, maintenance.stop)
    jobs = JobRunner(maintenance.engine, maintenance.settings.lease_seconds, maintenance.settings.sweep_seconds)
    summaries = SummaryRunner(maintenance.engine)
    jobs.start()
    summaries.start()
    try:
        maintenance.run()
    finally:
        summaries.stop()
        jobs.stop()


if __name__ == "__main__":
    main()
