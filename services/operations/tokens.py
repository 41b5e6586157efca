"""Tokens: made, listed, revoked."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

from msgspec import Meta

from cotrail.services.access import tokens
from cotrail.services.access.actor import Scope
from cotrail.services.access.tokens import NewToken, RevokedToken, TokenRecord
from cotrail.services.operations.operation import operation

Name = Annotated[str, Meta(min_length=1, max_length=100)]
Days = Annotated[float, Meta(gt=0, le=36_600)]


@operation("POST", "/tokens", Scope.ADMIN, status=201)
def create(name: Name, scopes: Sequence[Scope], project: str | None = None, days: Days | None = None) -> NewToken:
    """Make a token. Its secret is in the answer, and shown nowhere else.

    scopes: what it allows, each with those before it; project: the own one where none is named; days: until it expires,
    never where none are given.
    """
    lifetime = None if days is None else timedelta(days=days)
    return tokens.create(name, scopes, project=project, lifetime=lifetime)


@operation("GET", "/tokens", Scope.ADMIN)
def index() -> tuple[TokenRecord, ...]:
    """List tokens, the newest first, those that expired or were revoked too."""
    return tokens.list_all()


@operation("DELETE", "/tokens/{token}", Scope.ADMIN)
def revoke(token: str) -> RevokedToken:
    """Revoke a token for good; token: its id. Processes of the service take it for a few more seconds."""
    return tokens.revoke(token)
