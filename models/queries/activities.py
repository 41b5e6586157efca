"""Activities: who asked the service to change what, and what it answered."""

from collections.abc import Collection
from datetime import datetime

from msgspec import Struct
from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import distinct_on

from cotrail.models.records.projects import in_project
from cotrail.models.schema.service_tables import activities

CREATED = 201
"""HTTP's status of a request that made something."""


class ActivityRecord(Struct, frozen=True, kw_only=True):
    """A request that was to change something.

    actor: the name of the token, or of the person who signed in; token_id: None for whoever is at the machine itself.
    subject: the run, corpus or other thing that was named or made; status: HTTP's, of the answer.
    """

    id: int
    at: datetime
    project: str
    actor: str
    token_id: str | None
    operation: str
    subject: str | None
    status: int
    request_id: str


def list_activities(connection: Connection, *, limit: int, before: int | None = None) -> list[ActivityRecord]:
    """Return activities of the connection's project, or all, the newest first; before: only those before this one."""
    own = select(activities).where(*in_project(connection, activities))
    if before is not None:
        own = own.where(activities.c.id < before)
    rows = connection.execute(own.order_by(activities.c.id.desc()).limit(limit)).mappings()
    return [ActivityRecord(**row) for row in rows]


def makers_of(connection: Connection, subjects: Collection[str]) -> dict[str, str]:
    """Return who made each of these things through the service."""
    made = activities.c.subject.in_(subjects), activities.c.status == CREATED
    query = select(activities.c.subject, activities.c.actor).where(*made)
    rows = connection.execute(
        query.order_by(activities.c.subject, activities.c.id).ext(distinct_on(activities.c.subject))
    )
    return {row.subject: row.actor for row in rows}
