"""Projects: their quotas, what each may use apart from its own, and who asked the service to change what in them."""

from collections.abc import Collection
from datetime import datetime
from decimal import Decimal
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, func, or_, select
from sqlalchemy.dialects.postgresql import distinct_on

from cotrail.models.records.projects import in_project
from cotrail.models.schema.service_tables import activities, projects, tokens

REDIRECTED = 300
"""Below it are HTTP's statuses of requests that were carried out."""

CREATED = 201
"""HTTP's status of a request that made something."""


class ActivityRecord(Struct, frozen=True, kw_only=True):
    """A request that was to change something.

    actor: the name of the token, or of the person who signed in; token_id: None for the user of the machine itself.
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


def beginner_of(connection: Connection, subject: str, operations: Collection[str]) -> str | None:
    """Return the id of the token with which one of these operations first made a thing; None where there is none."""
    made = activities.c.subject == subject, activities.c.operation.in_(operations), activities.c.status < REDIRECTED
    return connection.execute(select(activities.c.token_id).where(*made).order_by(activities.c.id).limit(1)).scalar()


def makers_of(connection: Connection, subjects: Collection[str]) -> dict[str, str]:
    """Return who made each of these things through the service."""
    made = activities.c.subject.in_(subjects), activities.c.status == CREATED
    query = select(activities.c.subject, activities.c.actor).where(*made)
    rows = connection.execute(
        query.order_by(activities.c.subject, activities.c.id).ext(distinct_on(activities.c.subject))
    )
    return {row.subject: row.actor for row in rows}


def read_grants(connection: Connection, project: str) -> dict[str, Any]:
    """Return the `corpora` and the `models` that a project may use; None for all."""
    row = connection.execute(select(projects.c.corpora, projects.c.models).where(projects.c.name == project)).first()
    return {"corpora": None, "models": None} if row is None else {"corpora": row.corpora, "models": row.models}


class ProjectRecord(Struct, frozen=True, kw_only=True):
    """A project.

    corpora, models: those of others that it may use, None for all; open_questions, money (in US dollars), stored_bytes:
    the most that may be open at once, be spent, and be taken by uploaded files, None where nothing is limited.
    """

    name: str
    created_at: datetime
    corpora: tuple[str, ...] | None
    models: tuple[str, ...] | None
    open_questions: int | None
    money: Decimal | None
    stored_bytes: int | None


def read_projects(connection: Connection) -> list[ProjectRecord]:
    """Return all projects, by name."""
    return [_record(row) for row in connection.execute(select(projects).order_by(projects.c.name))]


def find_project(connection: Connection, name: str) -> ProjectRecord | None:
    """Return the project of this name, if there is one."""
    row = connection.execute(select(projects).where(projects.c.name == name)).one_or_none()
    return None if row is None else _record(row)


def _record(row: object) -> ProjectRecord:
    values = {name: getattr(row, name) for name in ProjectRecord.__struct_fields__}
    return ProjectRecord(**values | {name: values[name] and tuple(values[name]) for name in ("corpora", "models")})


# Tokens: whose they are, what they allow, and until when. Their secrets are stored nowhere.


class TokenRecord(Struct, frozen=True, kw_only=True):
    """A token; person: who signed in with it, None for a program's."""

    id: str
    project: str
    name: str
    scopes: tuple[str, ...]
    person: str | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None


class StoredToken(Struct, frozen=True, kw_only=True):
    """What decides whether a token is valid; is_stale: whether its last use was noted over a minute ago, or never."""

    record: TokenRecord
    digest: str
    is_valid: bool
    is_stale: bool


_COLUMNS = tuple(tokens.c[name] for name in TokenRecord.__struct_fields__)
_VALID = tokens.c.revoked_at.is_(None) & or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > func.now())
_STALE = or_(tokens.c.used_at.is_(None), tokens.c.used_at < func.now() - func.make_interval(0, 0, 0, 0, 0, 1))


def find_token(connection: Connection, token_id: str) -> StoredToken | None:
    """Return the token of this id, if there is one, for any caller."""
    query = select(*_COLUMNS, tokens.c.digest, _VALID.label("is_valid"), _STALE.label("is_stale"))
    row = connection.execute(query.where(tokens.c.id == token_id)).one_or_none()
    if row is None:
        return None
    return StoredToken(record=_token_record(row), digest=row.digest, is_valid=row.is_valid, is_stale=row.is_stale)


def list_tokens(connection: Connection) -> list[TokenRecord]:
    """Return the tokens of the connection's project, the newest first; without one, all."""
    query = select(*_COLUMNS).where(*in_project(connection, tokens))
    return [_token_record(row) for row in connection.execute(query.order_by(tokens.c.created_at.desc(), tokens.c.id))]


def _token_record(row: object) -> TokenRecord:
    values = {name: getattr(row, name) for name in TokenRecord.__struct_fields__}
    return TokenRecord(**values | {"scopes": tuple(values["scopes"])})
