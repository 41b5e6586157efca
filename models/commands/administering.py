"""Changes that serve the service itself: tokens, projects, activities and jobs."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, func, insert, or_, select, text, update
from sqlalchemy.dialects import postgresql

from cotrail.errors import ConflictError, UnknownNameError
from cotrail.models.records.idempotency import COLUMNS, JobRecord, job_record
from cotrail.models.records.projects import in_project, own_project
from cotrail.models.schema.service_tables import activities, jobs, projects, tokens
from cotrail.models.schema.states import OPEN_JOBS, JobState

NOTED = timedelta(minutes=1)
"""How often at most the use of a token is noted."""


def create_token(connection: Connection, values: Mapping[str, Any], lifetime: timedelta | None) -> None:
    """Store a token; lifetime: None where it doesn't expire."""
    expires = None if lifetime is None else func.now() + lifetime
    connection.execute(insert(tokens).values({**values, "expires_at": expires}))


def revoke_token(connection: Connection, token_id: str) -> bool:
    """Revoke a token of the connection's project, unless it is revoked; returns False where there is none."""
    revoked = func.coalesce(tokens.c.revoked_at, func.now())
    own = update(tokens).where(tokens.c.id == token_id, *in_project(connection, tokens))
    return connection.execute(own.values(revoked_at=revoked).returning(tokens.c.id)).scalar() is not None


def note_use(connection: Connection, token_id: str) -> None:
    """Note that a token is used, unless that was noted a moment ago."""
    stale = or_(tokens.c.used_at.is_(None), tokens.c.used_at < func.now() - NOTED)
    connection.execute(update(tokens).where(tokens.c.id == token_id, stale).values(used_at=func.now()))


def record_activities(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Store activities, in this order."""
    connection.execute(insert(activities), rows)


def create_project(connection: Connection, name: str, values: Mapping[str, Any]) -> bool:
    """Make a project; returns False where there is one of this name."""
    new = (
        postgresql.insert(projects).values({"name": name, **values}).on_conflict_do_nothing().returning(projects.c.name)
    )
    return connection.execute(new).scalar() is not None


def change_project(connection: Connection, name: str, values: Mapping[str, Any]) -> bool:
    """Change a project's grants and quotas; returns False where there is none of this name."""
    change = update(projects).where(projects.c.name == name).values(values).returning(projects.c.name)
    return connection.execute(change).scalar() is not None


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
