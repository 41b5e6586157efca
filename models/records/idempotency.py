"""Keys that clients give their requests, so that the same request again makes nothing more.

A key is stored in the transaction that makes what was asked for: both are there, or neither.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, RowMapping, delete, func, select
from sqlalchemy.dialects.postgresql import insert

from cotrail.errors import ConflictError
from cotrail.models.records.projects import own_project
from cotrail.models.schema.service_tables import idempotency_keys, jobs
from cotrail.models.schema.states import JobState

IDEMPOTENCY = "cotrail_idempotency"
"""The execution option of connections with the request's key and the digest of what it asks for; without it, none."""

KEPT = timedelta(hours=24)
"""How long keys are kept."""

_REMOVED_AT_ONCE = 100


class MadeBefore(Exception):  # noqa: N818 - no error: what was asked for is there
    """The request was carried out before; made: the ids of what it made."""

    def __init__(self, made: Sequence[str]) -> None:
        super().__init__()
        self.made = list(made)


class KeyedRequest(Struct, frozen=True):
    """A request with a key; digest: of what it asks for."""

    key: str
    digest: str


def made_before(connection: Connection, request: KeyedRequest) -> list[str] | None:
    """Return the ids of what the request made; None where it is new. ConflictError where its key was another's."""
    row = connection.execute(
        select(idempotency_keys.c.request, idempotency_keys.c.made).where(
            *_of(connection, request), idempotency_keys.c.created_at > func.now() - KEPT
        )
    ).one_or_none()
    if row is None:
        return None
    if row.request != request.digest:
        raise ConflictError(
            f"the Idempotency-Key {request.key!r} was used for another request; take a new one for each request, and "
            "the same one only where that is sent again"
        )
    return list(row.made)


def claim_key(connection: Connection, made: Sequence[str]) -> None:
    """Store the key of the connection's request, if it has one, with the ids of what this transaction makes.

    Where another transaction has the same key, this waits for its end. Raises MadeBefore where the request was carried
    out, and ConflictError where another one was.
    """
    request: KeyedRequest | None = connection.get_execution_options().get(IDEMPOTENCY)
    if request is None:
        return
    _remove_old(connection)
    row: dict[str, Any] = {"project": own_project(connection), "key": request.key, "request": request.digest}
    new = insert(idempotency_keys).values(**row, made=list(made)).on_conflict_do_nothing()
    # DO NOTHING waits for a transaction that inserts the same key. What that commits is seen by the query behind it.
    if not connection.execute(new.returning(idempotency_keys.c.key)).first():
        raise MadeBefore(made_before(connection, request) or [])


def _of(connection: Connection, request: KeyedRequest) -> tuple[Any, ...]:
    return idempotency_keys.c.project == own_project(connection), idempotency_keys.c.key == request.key


def _remove_old(connection: Connection) -> None:
    """Remove some of the project's keys that are no longer kept, without waiting for others who do."""
    old = (
        select(idempotency_keys.c.key)
        .where(idempotency_keys.c.project == own_project(connection))
        .where(idempotency_keys.c.created_at <= func.now() - KEPT)
        .limit(_REMOVED_AT_ONCE)
        .with_for_update(skip_locked=True)
    )
    connection.execute(
        delete(idempotency_keys).where(
            idempotency_keys.c.project == own_project(connection), idempotency_keys.c.key.in_(old)
        )
    )


class JobFacts(Struct, frozen=True, kw_only=True):
    """How a job stands; progress: how many paragraphs, or questions, are done.

    result: what it came to; of an experiment that is under way, how far it is.
    """

    kind: str
    state: JobState
    progress: int
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    result: dict[str, Any] | None = None


class JobRecord(JobFacts, frozen=True, kw_only=True):
    """A job; see `cotrail.models.schema.service_tables.Job`."""

    id: str
    project: str
    request: dict[str, Any]
    failures: int
    error: dict[str, Any] | None
    epoch: int
    worker: str | None


COLUMNS = tuple(jobs.c[name] for name in JobRecord.__struct_fields__)


def job_record(row: RowMapping) -> JobRecord:
    """A row of `COLUMNS` as a record."""
    return JobRecord(**{**row, "state": JobState(row["state"])})
