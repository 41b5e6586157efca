"""Tokens: whose they are, what they allow, and until when. Their secrets are stored nowhere."""

from datetime import datetime

from msgspec import Struct
from sqlalchemy import Connection, func, or_, select

from cotrail.models.records.projects import in_project
from cotrail.models.schema.service_tables import tokens


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
    """Return the token of this id, if there is one, whoever asks."""
    query = select(*_COLUMNS, tokens.c.digest, _VALID.label("is_valid"), _STALE.label("is_stale"))
    row = connection.execute(query.where(tokens.c.id == token_id)).one_or_none()
    if row is None:
        return None
    return StoredToken(record=_record(row), digest=row.digest, is_valid=row.is_valid, is_stale=row.is_stale)


def list_tokens(connection: Connection) -> list[TokenRecord]:
    """Return the tokens of the connection's project, the newest first; without one, all."""
    query = select(*_COLUMNS).where(*in_project(connection, tokens))
    return [_record(row) for row in connection.execute(query.order_by(tokens.c.created_at.desc(), tokens.c.id))]


def _record(row: object) -> TokenRecord:
    values = {name: getattr(row, name) for name in TokenRecord.__struct_fields__}
    return TokenRecord(**values | {"scopes": tuple(values["scopes"])})
