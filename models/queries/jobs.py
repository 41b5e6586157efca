"""Jobs: which there are, and how far each is."""

from collections.abc import Sequence

from sqlalchemy import Connection, select, tuple_

from cotrail.errors import UnknownNameError
from cotrail.models.records.jobs import COLUMNS, JobRecord, job_record
from cotrail.models.records.projects import in_project
from cotrail.models.schema.service_tables import jobs
from cotrail.models.schema.states import JobState


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
