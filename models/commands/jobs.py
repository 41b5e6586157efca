"""Jobs that a person queues and cancels."""

import secrets
from typing import Any

from sqlalchemy import Connection, func, insert, select, text, update

from cotrail.errors import ConflictError, UnknownNameError
from cotrail.models.records.jobs import COLUMNS, JobRecord, job_record
from cotrail.models.records.projects import in_project, own_project
from cotrail.models.schema.service_tables import jobs
from cotrail.models.schema.states import OPEN_JOBS, JobState


def queue_job(connection: Connection, kind: str, request: dict[str, Any]) -> JobRecord:
    """Queue a job; where the same one is open already, nothing is queued and that one is returned.

    request: what it is to do; its `name` is the name of what it makes, of which one job at a time is open.
    """
    project = own_project(connection)
    # Until the transaction ends, so that of two requests at once one finds the other's job.
    lock = text("SELECT pg_advisory_xact_lock(hashtextextended(:key, 0))")
    connection.execute(lock, {"key": f"job {project} {kind} {request['name']}"})
    if (there := _open_job(connection, project, kind, request["name"])) is not None:
        if there.request != request:
            raise ConflictError(
                f"the job {there.id} is making {request['name']} from something else; wait for it, or cancel it"
            )
        return there
    row = {"id": f"{kind}-{secrets.token_hex(6)}", "project": project, "kind": kind, "request": request}
    return job_record(connection.execute(insert(jobs).values(row).returning(*COLUMNS)).mappings().one())


def cancel_job(connection: Connection, job_id: str) -> JobRecord:
    """Cancel a job that hasn't ended, whose process then ends; raises UnknownNameError, ConflictError."""
    mine = jobs.c.id == job_id, *in_project(connection, jobs)
    cancelled = (
        update(jobs)
        .where(*mine, jobs.c.state.in_(OPEN_JOBS))
        .values(state=JobState.CANCELLED, finished_at=func.now(), lease_until=None)
        .returning(*COLUMNS)
    )
    if (row := connection.execute(cancelled).mappings().one_or_none()) is not None:
        return job_record(row)
    state = connection.execute(select(jobs.c.state).where(*mine)).scalar()
    if state is None:
        raise UnknownNameError(f"there is no job {job_id!r}; `cotrail jobs` lists them")
    raise ConflictError(f"the job {job_id} has ended already: it is {state}")


def _open_job(connection: Connection, project: str, kind: str, name: str) -> JobRecord | None:
    of_name = jobs.c.project == project, jobs.c.kind == kind, jobs.c.request["name"].astext == name
    statement = select(*COLUMNS).where(*of_name, jobs.c.state.in_(OPEN_JOBS))
    row = connection.execute(statement).mappings().first()
    return None if row is None else job_record(row)
