"""Jobs: queued work that isn't a run's, listed, shown, cancelled."""

from collections.abc import Callable, Sequence
from typing import Annotated

from msgspec import Meta
from sqlalchemy import Connection

from cotrail.models.commands.jobs import cancel_job
from cotrail.models.queries.jobs import list_jobs, read_job
from cotrail.models.records.idempotency import claim_key
from cotrail.models.records.jobs import JobRecord
from cotrail.models.schema.states import JobState
from cotrail.services.access.actor import Scope
from cotrail.services.jobs.job import Job, JobPage, job_of
from cotrail.services.operations.operation import operation
from cotrail.services.store import open_store, reading

Limit = Annotated[int, Meta(ge=1, le=1000)]


@operation("GET", "/jobs", Scope.READ)
def index(states: Sequence[JobState] = (), limit: Limit = 100, after: str | None = None) -> JobPage:
    """List jobs, the newest first; after: the job behind which the page begins."""
    with reading() as connection:
        jobs = list_jobs(connection, states, limit + 1, after)
    page = tuple(map(job_of, jobs[:limit]))
    return JobPage(jobs=page, next=page[-1].job if len(jobs) > limit else None)


@operation("GET", "/jobs/{job}", Scope.READ)
def show(job: str) -> Job:
    """Show a job: how far it is, and what it came to."""
    with reading() as connection:
        return job_of(read_job(connection, job))


@operation("POST", "/jobs/{job}/cancel", Scope.OPERATE)
def cancel(job: str) -> Job:
    """Cancel a job that hasn't ended; nothing of it remains."""
    with open_store() as engine, engine.begin() as connection:
        return job_of(cancel_job(connection, job))


def queued(queue: Callable[[Connection], JobRecord]) -> Job:
    """Queue a job in a transaction, and once where its request has a key."""
    with open_store() as engine, engine.begin() as connection:
        record = queue(connection)
        claim_key(connection, [record.id])
        return job_of(record)


def queued_before(jobs: Sequence[str]) -> Job:
    """The job that was queued by the same request before, as it is now."""
    return show.function(jobs[0])
