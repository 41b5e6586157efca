"""What workers have under way, at which pace, and which maintenance processes there are."""

from collections.abc import Collection
from datetime import datetime

from msgspec import Struct
from sqlalchemy import Connection, exists, func, literal, literal_column, or_, select, text

from cotrail.models.records.projects import in_project
from cotrail.models.schema.database import LEADER, SESSION_PREFIX
from cotrail.models.schema.states import StepState
from cotrail.models.schema.tables import questions, runs, steps


class StepUnderWay(Struct, frozen=True, kw_only=True):
    """A step that a worker holds: claimed, and executed now or next."""

    worker: str
    """The process, as HOST:PID:KEY."""

    run: str
    question: str
    step: int
    kind: str
    since: datetime
    seconds: float


class MaintenanceSession(Struct, frozen=True, kw_only=True):
    """A maintenance process; leads: whether it is the active one."""

    host: str
    pid: int
    leads: bool


_UNDER_WAY = (
    select(
        steps.c.worker,
        steps.c.run_id.label("run"),
        questions.c.key.label("question"),
        steps.c.sequence.label("step"),
        steps.c.kind,
        steps.c.started_at.label("since"),
        func.extract("epoch", func.now() - steps.c.started_at).label("seconds"),
    )
    .join(questions, questions.c.id == steps.c.question_id)
    .join(runs, runs.c.id == steps.c.run_id)
    .where(steps.c.state == StepState.RUNNING)
    .order_by(steps.c.started_at, steps.c.id)
)

# `pg_locks` shows an advisory lock of one number as its halves, of which the first is 0 here.
_MAINTENANCE = text(
    "SELECT application_name AS name, EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted"
    " AND pg_locks.pid = session.pid AND classid = 0 AND objid = :leader) AS leads"
    " FROM pg_stat_activity AS session"
    " WHERE datname = current_database() AND starts_with(application_name, :named) ORDER BY leads DESC, name"
)


def own_runs(connection: Connection, run_ids: Collection[str]) -> set[str]:
    """Return those of these runs that the connection's project sees."""
    own = select(runs.c.id).where(runs.c.id.in_(run_ids), *in_project(connection, runs))
    return set(connection.execute(own).scalars())


def read_steps_under_way(connection: Connection) -> list[StepUnderWay]:
    """Return the steps that workers hold, the oldest first."""
    own = _UNDER_WAY.where(*in_project(connection, runs))
    return [StepUnderWay(**{**row, "seconds": float(row["seconds"])}) for row in connection.execute(own).mappings()]


def read_maintenance(connection: Connection) -> list[MaintenanceSession]:
    """Return the maintenance processes that are connected to the database, the active one first."""
    listed = []
    for name, leads in connection.execute(_MAINTENANCE, {"leader": LEADER, "named": SESSION_PREFIX}):
        pid, _, host = name.removeprefix(SESSION_PREFIX).partition(" ")
        listed.append(MaintenanceSession(host=host, pid=int(pid), leads=leads))
    return listed


PACE_SECONDS = 600
"""The time over which it is measured."""


class Pace(Struct, frozen=True):
    """The number of a run's questions that ended lately, and the database's time."""

    questions: int
    now: datetime


def read_paces(connection: Connection, run_ids: Collection[str]) -> dict[str, Pace]:
    """Return the pace of each of these runs of which a question ended lately that it didn't take over whole."""
    since = func.now() - literal(PACE_SECONDS) * literal_column("interval '1 second'")
    own = exists().where(steps.c.question_id == questions.c.id, steps.c.adopted_from.is_(None))
    query = (
        select(questions.c.run_id, func.count(), func.now())
        .join_from(questions, runs, runs.c.id == questions.c.run_id)
        .where(questions.c.run_id.in_(run_ids), questions.c.finished_at > since, or_(runs.c.origin.is_(None), own))
    )
    return {row[0]: Pace(row[1], row[2]) for row in connection.execute(query.group_by(questions.c.run_id))}
