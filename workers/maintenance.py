"""The maintenance process: admits questions, sends the steps that are due, and finds those that got lost.

`python -m workers.maintenance`. Any number may run; the one that holds the advisory lock works, the others wait.
"""

import logging
import os
import signal
import threading
import time
from collections.abc import Sequence
from types import FrameType

import psycopg
from celery import Celery
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from cotrail.actions import ACTIONS, Failure
from models.admission import admit
from models.advancing import Dispatch
from models.database import NOTICED, connect, unanswered
from models.ledger import Ledger
from models.submission import WAKE
from models.upkeep import (
    cancelled_steps,
    close_runs,
    exhausted,
    expire_leases,
    ready_kinds,
    take_lost,
    take_suspect,
    take_unsent,
)
from tasks.routing import BROKER_ERRORS, send, withdraw
from tasks.settings import Settings, settings
from workers.app import app
from workers.logs import keep_bounded
from workers.pace import Pace
from workers.ready import announce
from workers.retention import Retention

logger = logging.getLogger(__name__)

LEADER = 0x636F7472
"""The advisory lock that makes one maintenance process the working one."""

BUNCH = 1000
"""How many steps of a kind that weren't sent are sent at once."""

ADMISSIONS = 10
"""How often questions are admitted between two sweeps at most; ever more seldom while none may begin."""


class Maintenance:
    """One sweep after another, each when it is time or when somebody says that there is work."""

    def __init__(self, settings: Settings, app: Celery) -> None:
        self.settings = settings
        self.app = app
        self.stopping = threading.Event()
        self._changed: set[str] = set()
        self._admitting = Pace(settings.sweep_seconds / ADMISSIONS, settings.sweep_seconds)
        self.engine: Engine = connect(settings.database, by_index=True)
        self.ledger = Ledger(self.engine, f"maintenance:{os.getpid()}", settings.lease_seconds)
        self.retention = Retention(self.engine, settings.retention_days)
        self._judging_from = 0.0

    def run(self) -> None:
        """Sweeps until told to stop; a database that doesn't answer is waited for."""
        while not self.stopping.is_set():
            try:
                with self._listening() as connection:
                    self._judge_after(self.settings.lease_seconds - _seconds_up(connection))
                    announce("maintenance")
                    self._lead(connection)
            except (psycopg.Error, DBAPIError) as error:
                if not unanswered(error):
                    raise
                logger.warning("the database doesn't answer, trying again: %s", error)
                self._judge_after(self.settings.lease_seconds)
                self.stopping.wait(self.settings.sweep_seconds)

    def sweep(self) -> int:
        """Repairs whatever is amiss right now; returns how many messages it sent."""
        due = self._take_back() if time.monotonic() >= self._judging_from else []
        due += self._take()
        with self.engine.begin() as connection:
            due += take_suspect(connection)
            closed = close_runs(connection)
        for run_id in closed:
            logger.info("all questions of %s have ended", run_id)
        return send(due) + self.admit()

    def admit(self) -> int:
        """Begins as many questions as may begin now; returns how many messages it sent."""
        with self.engine.begin() as connection:
            admitted = admit(connection)
        self._admitting.looked(found=bool(admitted))
        return send(admitted)

    def stop(self, *_: int | FrameType | None) -> None:
        """Ends `run` soon."""
        self.stopping.set()

    def _judge_after(self, seconds: float) -> None:
        """Gives workers time to renew their leases: while the database was away, none of them could."""
        self._judging_from = max(self._judging_from, time.monotonic() + seconds)

    def _take_back(self) -> list[Dispatch]:
        with self.engine.begin() as connection:
            expired = expire_leases(connection)
            poisoned = exhausted(connection, expired, self.settings.max_attempts) if expired else []
        if expired:
            logger.warning("%d steps were given back: their workers gave no sign of life", len(expired))
        return [message for messages in self._give_up(poisoned) for message in messages]

    def _listening(self) -> psycopg.Connection[tuple[object, ...]]:
        # Not as a URL: libpq reads one otherwise than SQLAlchemy writes it, and quotes what it doesn't understand.
        _, named = self.engine.dialect.create_connect_args(self.engine.url)
        connection = psycopg.connect(**{**NOTICED, **named}, autocommit=True)
        connection.execute(f"LISTEN {WAKE}")
        return connection

    def _lead(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        leads = False
        while not self.stopping.is_set():
            leads = leads or bool(connection.execute("SELECT pg_try_advisory_lock(%s)", [LEADER]).fetchone() == (True,))
            if leads:
                self._sweep_out()
                self.retention.go_on()
            for _ in range(ADMISSIONS):
                woken = list(connection.notifies(timeout=self.settings.sweep_seconds / ADMISSIONS, stop_after=1))
                if woken or self.stopping.is_set():
                    break
                if leads and self._admitting.due:
                    self.admit()
            self._changed = {notification.payload for notification in woken}

    def _sweep_out(self) -> None:
        try:
            began = time.monotonic()
            for run_id in self._changed:
                self._withdraw(run_id)
            sent = self.sweep()
            if sent:
                logger.info("sent %d messages in %.3f s", sent, time.monotonic() - began)
        except BROKER_ERRORS as error:
            logger.warning("the broker doesn't answer, trying again: %s", error)

    def _withdraw(self, run_id: str) -> None:
        """Takes the messages of a run that was cancelled out of their queues."""
        with self.engine.begin() as connection:
            step_ids = cancelled_steps(connection, run_id)
        if step_ids:
            logger.info("%s is cancelled: %d of its messages are taken back", run_id, withdraw(step_ids))

    def _give_up(self, step_ids: list[int]) -> list[list[Dispatch]]:
        if not step_ids:
            return []
        message = (
            "its executions ended without a result or a sign of life again and again, whatever ran beside them; "
            "the workers' logs may say why"
        )
        logger.error("%d steps are set aside: %s", len(step_ids), message)
        return self.ledger.give_up(step_ids, Failure(type="PoisonedStep", message=message))

    def _take(self) -> list[Dispatch]:
        with self.engine.begin() as connection:
            kinds = ready_kinds(connection, ACTIONS)
        due: list[Dispatch] = []
        queued = self._queued(kinds) if kinds else {}
        with self.engine.begin() as connection:
            for kind, messages in queued.items():
                lost = take_lost(connection, kind, messages, self.settings.resend_seconds)
                if lost:
                    logger.warning("%d %s messages seem lost and are sent again", len(lost), kind)
                due += lost + take_unsent(connection, kind, BUNCH)
        return due

    def _queued(self, kinds: Sequence[str]) -> dict[str, int]:
        """How many messages their queues hold, asked over a connection that is kept: opening one takes long."""
        with self.app.producer_or_acquire() as producer:
            return {kind: producer.channel.queue_declare(kind).message_count for kind in kinds}


def _seconds_up(connection: psycopg.Connection[tuple[object, ...]]) -> float:
    """How long the server has been running."""
    row = connection.execute("SELECT extract(epoch FROM now() - pg_postmaster_start_time())::float").fetchone()
    assert row is not None and isinstance(row[0], float)  # noqa: S101, PT018 - a SELECT of a float
    return row[0]


def main() -> None:
    """Runs until SIGTERM or SIGINT."""
    keep_bounded()
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s: %(levelname)s] %(message)s")
    maintenance = Maintenance(settings(), app)
    signal.signal(signal.SIGTERM, maintenance.stop)
    signal.signal(signal.SIGINT, maintenance.stop)
    maintenance.run()


if __name__ == "__main__":
    main()
