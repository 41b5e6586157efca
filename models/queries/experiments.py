"""Experiments and jobs. Ids are as the connection's project calls them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, exists, func, select, tuple_

from cotrail.common.nearest import unknown
from cotrail.errors import UnknownNameError
from cotrail.models.queries.runs import LATEST
from cotrail.models.records.idempotency import COLUMNS, JobRecord, job_record
from cotrail.models.records.projects import in_project, qualified, unqualified
from cotrail.models.schema.service_tables import jobs
from cotrail.models.schema.states import JobState, QuestionStatus
from cotrail.models.schema.tables import experiments, questions, runs, steps


class ExperimentRecord(Struct, frozen=True, kw_only=True):
    """An experiment.

    plan: all that decides its results, every default spelled out; runs: the ids of its runs by cell.
    """

    id: str
    created_at: datetime
    plan: dict[str, Any]
    runs: dict[str, str]


def read_experiment(connection: Connection, experiment_id: str) -> ExperimentRecord:
    """Return an experiment and its runs, in the order of their submission; raises UnknownNameError."""
    id_ = qualified(connection, experiment_id)
    own = select(experiments).where(experiments.c.id == id_, *in_project(connection, experiments))
    row = connection.execute(own).one_or_none()
    if row is None:
        raise _unknown(connection, experiment_id)
    of_cells = select(runs.c.cell, runs.c.id).where(runs.c.experiment_id == id_, runs.c.cell.is_not(None))
    cells = dict(connection.execute(of_cells.order_by(runs.c.created_at, runs.c.id)).all())
    return ExperimentRecord(id=experiment_id, created_at=row.created_at, plan=row.plan, runs=cells)


def experiment_ids(connection: Connection) -> list[str]:
    """Return the ids of all experiments, the newest first."""
    own = select(experiments.c.id).where(*in_project(connection, experiments))
    newest = own.order_by(experiments.c.created_at.desc(), experiments.c.id.desc())
    return [unqualified(connection, each) for each in connection.execute(newest).scalars()]


def resolve_experiment(connection: Connection, text: str) -> str:
    """Return the id of an experiment given by its id or `latest`; raises UnknownNameError."""
    ids = experiment_ids(connection)
    if text in ids:
        return text
    if text == LATEST and ids:
        return ids[0]
    raise _unknown(connection, text)


def _unknown(connection: Connection, text: str) -> UnknownNameError:
    ids = experiment_ids(connection)
    begin = "" if ids else "; `cotrail experiment run FILE` begins one"
    return UnknownNameError(unknown("experiment", text, ids) + begin)


def count_taken_over(connection: Connection, run_id: str) -> tuple[int, int]:
    """Return how many steps a fork took over, and of how many questions the answer too."""
    taken = select(func.count()).where(steps.c.run_id == run_id, steps.c.adopted_from.is_not(None))
    computes = exists().where(steps.c.question_id == questions.c.id, steps.c.adopted_from.is_(None))
    finished = questions.c.run_id == run_id, questions.c.status == QuestionStatus.FINISHED
    whole = select(func.count()).select_from(questions).where(*finished, ~computes)
    return connection.execute(taken).scalar_one(), connection.execute(whole).scalar_one()


def read_job(connection: Connection, job_id: str) -> JobRecord:
    """Return a job; raises UnknownNameError."""
    statement = select(*COLUMNS).where(jobs.c.id == job_id, *in_project(connection, jobs))
    row = connection.execute(statement).mappings().one_or_none()
    if row is None:
        raise UnknownNameError(f"there is no job {job_id!r}; `cotrail jobs` lists them")
    return job_record(row)


def list_jobs(connection: Connection, states: Sequence[JobState], limit: int, after: str | None) -> list[JobRecord]:
    """Return jobs in these states, or in any where none are given, the newest first; after: the one before them."""
    statement = select(*COLUMNS).where(*in_project(connection, jobs))
    if states:
        statement = statement.where(jobs.c.state.in_(states))
    if after is not None:
        last = read_job(connection, after)
        statement = statement.where(tuple_(jobs.c.created_at, jobs.c.id) < (last.created_at, last.id))
    newest = statement.order_by(jobs.c.created_at.desc(), jobs.c.id.desc()).limit(limit)
    return [job_record(row) for row in connection.execute(newest).mappings()]


def last_finished(connection: Connection, project: str, kind: str, name: str) -> JobRecord | None:
    """Return the job that made what has this name last; None where none did."""
    of_name = jobs.c.project == project, jobs.c.kind == kind, jobs.c.request["name"].astext == name
    statement = select(*COLUMNS).where(*of_name, jobs.c.state == JobState.FINISHED)
    row = connection.execute(statement.order_by(jobs.c.finished_at.desc()).limit(1)).mappings().first()
    return None if row is None else job_record(row)
