"""Making, revoking and noting the use of tokens."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, func, insert, or_, update

from cotrail.models.records.projects import in_project
from cotrail.models.schema.service_tables import tokens

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
