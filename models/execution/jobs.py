"""Jobs as the processes see them that carry them out: claimed under a lease, fenced by an epoch as steps are.

A claim raises the epoch, and every later change names it: a process that lost its job, because its lease ran out or
somebody cancelled the job, changes nothing any more.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Integer, and_, case, cast, func, or_, select, tuple_, update

from cotrail.models.records.idempotency import COLUMNS, JobRecord, job_record
from cotrail.models.schema.service_tables import jobs
from cotrail.models.schema.states import JobState

MOST_FAILURES = 5
"""How often the process of a job may end without a result, and without coming any further, before the job fails."""

ENDED = "its process ended {times} times without a result or any progress; the log of maintenance says why"

Held = tuple[str, int]
"""A job that is held: its id and the epoch of the claim."""

# Of a queued job, the lease is the pause until it may be claimed again (`release_job`).
_due = or_(
    and_(jobs.c.state == JobState.QUEUED, or_(jobs.c.lease_until.is_(None), jobs.c.lease_until < func.now())),
    and_(jobs.c.state == JobState.RUNNING, jobs.c.lease_until < func.now()),
)


def claim_job(connection: Connection, kinds: Collection[str], worker: str, lease: float) -> JobRecord | None:
    """Claim the oldest job of these kinds that is due, for so many seconds; None where there is none.

    A job whose processes ended too often without a result fails in its place.
    """
    first = select(jobs.c.id).where(_due, jobs.c.kind.in_(kinds)).order_by(jobs.c.created_at, jobs.c.id)
    claim = (
        update(jobs)
        .where(jobs.c.id == first.limit(1).with_for_update(skip_locked=True).scalar_subquery())
        .values(
            state=JobState.RUNNING,
            epoch=jobs.c.epoch + 1,
            worker=worker,
            lease_until=_in_seconds(lease),
            started_at=func.coalesce(jobs.c.started_at, func.now()),
            # The lease of one that still runs ran out: the process that carried it out was killed.
            failures=jobs.c.failures + cast(jobs.c.state == JobState.RUNNING, Integer),
        )
        .returning(*COLUMNS)
    )
    row = connection.execute(claim).mappings().one_or_none()
    if row is None:
        return None
    job = job_record(row)
    if job.failures < MOST_FAILURES:
        return job
    message = ENDED.format(times=job.failures)
    fail_job(connection, (job.id, job.epoch), {"type": "CotrailError", "message": message})
    # This one has failed within this transaction, so that the same statement finds the next one.
    return claim_job(connection, kinds, worker, lease)


def renew_jobs(connection: Connection, held: Sequence[Held], lease: float) -> set[Held]:
    """Renew the leases of jobs; returns those that are still held, and not cancelled or claimed by another process."""
    renew = update(jobs).where(tuple_(jobs.c.id, jobs.c.epoch).in_(held), jobs.c.state == JobState.RUNNING)
    renewed = connection.execute(renew.values(lease_until=_in_seconds(lease)).returning(jobs.c.id, jobs.c.epoch))
    return {(row.id, row.epoch) for row in renewed}


def release_job(connection: Connection, held: Held, *, pause: float = 0.0, failed: bool = False) -> bool:
    """Give a job back, to be claimed again after a pause in seconds; failed: whether its process ended by itself."""
    queued = {"state": JobState.QUEUED, "worker": None, "lease_until": _in_seconds(pause)}
    return _change(connection, held, **queued, failures=jobs.c.failures + int(failed))


def note_progress(connection: Connection, held: Held, progress: int, result: dict[str, Any] | None = None) -> bool:
    """Record how far a job is; returns False where it isn't held any more."""
    further = progress > jobs.c.progress
    values: dict[str, Any] = {} if result is None else {"result": result}
    return _change(
        connection,
        held,
        progress=func.greatest(jobs.c.progress, progress),
        failures=case((further, 0), else_=jobs.c.failures),
        **values,
    )


def finish_job(connection: Connection, held: Held, result: dict[str, Any]) -> bool:
    """Record the result of a job; returns False where it isn't held any more."""
    return _end(connection, held, state=JobState.FINISHED, result=result)


def fail_job(connection: Connection, held: Held, error: dict[str, str]) -> bool:
    """Record why a job failed; returns False where it isn't held any more."""
    return _end(connection, held, state=JobState.FAILED, error=error)


def _end(connection: Connection, held: Held, **values: Any) -> bool:
    return _change(connection, held, **values, finished_at=func.now(), lease_until=None)


def _change(connection: Connection, held: Held, **values: Any) -> bool:
    of_claim = jobs.c.id == held[0], jobs.c.epoch == held[1], jobs.c.state == JobState.RUNNING
    return connection.execute(update(jobs).where(*of_claim).values(values).returning(jobs.c.id)).scalar() is not None


def _in_seconds(seconds: float) -> ColumnElement[Any]:
    return func.now() + timedelta(seconds=seconds)
