"""Tokens: made, listed, revoked, and recognized.

A secret is `cotrail_<id>_<random>`. It is shown once, where it is made; the store has its SHA-256. What isn't a valid
token is answered alike, whether it is unknown, expired or revoked, and after the same work.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Lock
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace
from sqlalchemy import Engine

from cotrail.errors import InputError, UnauthenticatedError, UnknownNameError
from cotrail.models.commands import administering as commands
from cotrail.models.queries import projects as queries
from cotrail.models.queries.projects import TokenRecord as TokenRecord
from cotrail.services.access.projects import administers_service, check_reach
from cotrail.services.actor import Actor, Scope, acting, actor, scopes_up_to
from cotrail.services.operations.operation import operation
from cotrail.services.store import open_store

PREFIX = "cotrail"
RANDOM_BYTES = 32

REMEMBERED_SECONDS = 5.0
"""How long a process takes a token for valid without asking the store: revoking it has an effect by then."""

LOOKED_SECONDS = 1.0
"""For how long one look at a token holds for all streams that look."""

MOST_REMEMBERED = 10_000

NOT_VALID = "this token isn't valid: it is unknown, expired or revoked; ask an administrator for a new one"

_NO_TOKEN = hashlib.sha256(b"").hexdigest()
"""What secrets of unknown ids are compared with, so that these take the same time."""


class NewToken(Struct, frozen=True, kw_only=True):
    """A token that was just made; secret: what requests carry, shown only here."""

    id: str
    project: str
    name: str
    scopes: tuple[Scope, ...]
    secret: str


class RevokedToken(Struct, frozen=True, kw_only=True):
    """A token that was revoked."""

    id: str


def make_token(
    name: str,
    scopes: Sequence[Scope],
    *,
    project: str | None = None,
    lifetime: timedelta | None = None,
    person: str | None = None,
) -> NewToken:
    """Makes a token of a project, the one who asks' own where none is named.

    scopes: what it allows, each with those before it; lifetime: None where it doesn't expire; person: who signed in.
    Raises ForbiddenError for a project that isn't the administrator's, UnknownNameError for one that isn't there.
    """
    if not scopes:
        raise InputError(f"a token needs a scope; there are: {', '.join(Scope)}")
    of = check_reach(project)
    token_id = secrets.token_hex(6)
    allowed = tuple(scope for scope in Scope if scope in scopes_up_to(scopes))
    secret = f"{PREFIX}_{token_id}_{secrets.token_urlsafe(RANDOM_BYTES)}"
    row = {
        "id": token_id,
        "project": of,
        "name": name,
        "scopes": allowed,
        "digest": _digest(secret),
        "person": person,
        "created_by": actor().name,
    }
    with open_store() as engine, engine.begin() as connection:
        commands.create_token(connection, row, lifetime)
    return NewToken(id=token_id, project=of, name=name, scopes=allowed, secret=secret)


@operation("tokens.index", "GET", "/tokens", Scope.ADMIN)
def list_tokens() -> tuple[TokenRecord, ...]:
    """List tokens, the newest first, those that expired or were revoked too."""
    # Those of the project of the one who asks; the service's administrators see all.
    with _administered() as engine, engine.connect() as connection:
        return tuple(queries.list_tokens(connection))


@operation("tokens.revoke", "DELETE", "/tokens/{token}", Scope.ADMIN)
def revoke_token(token: str) -> RevokedToken:
    """Revoke a token for good; token: its id. Processes of the service take it for a few more seconds."""
    # Raises UnknownNameError where the one who asks administers none of this id.
    with _administered() as engine, engine.begin() as connection:
        if not commands.revoke_token(connection, token):
            raise UnknownNameError(f"there is no token {token!r}; `cotrail token list` lists them")
    _remembered.forget(token)
    return RevokedToken(id=token)


def end_session(token_id: str) -> None:
    """Revokes the token of a session whose person signs out."""
    with acting(_AS_SERVICE), open_store() as engine, engine.begin() as connection:
        commands.revoke_token(connection, token_id)
    _remembered.forget(token_id)


def recognized(secret: str) -> Actor:
    """The one whose token this is; raises UnauthenticatedError."""
    digest = _digest(secret)
    if (known := _remembered.get(digest)) is not None:
        return known
    token_id = [*secret.split("_", 2), ""][1]
    with acting(_AS_SERVICE), open_store() as engine, engine.connect() as connection:
        stored = queries.find_token(connection, token_id)
        is_same = hmac.compare_digest(digest, stored.digest if stored else _NO_TOKEN)
        if stored is None or not is_same or not stored.is_valid:
            raise UnauthenticatedError(NOT_VALID)
        if stored.is_stale:
            commands.note_use(connection, token_id)
            connection.commit()
    who = Actor(
        name=stored.record.person or stored.record.name,
        project=stored.record.project,
        scopes=frozenset(map(Scope, stored.record.scopes)),
        token=stored.record.id,
        person=stored.record.person is not None,
    )
    _remembered.keep(digest, who, stored.record.expires_at)
    return who


def remembered(secret: str) -> Actor | None:
    """The one whose token this is, where this process knows without asking the store."""
    return _remembered.get(_digest(secret))


def is_valid(token_id: str) -> bool:
    """Whether a token is neither revoked nor expired, as the store said up to a second ago."""
    known, until = _looked_at.get(token_id, (False, 0.0))
    if time.monotonic() < until:
        return known
    with acting(_AS_SERVICE), open_store() as engine, engine.connect() as connection:
        stored = queries.find_token(connection, token_id)
    if len(_looked_at) >= MOST_REMEMBERED:
        _looked_at.clear()
    valid = stored is not None and stored.is_valid
    _looked_at[token_id] = valid, time.monotonic() + LOOKED_SECONDS
    return valid


class _Remembered:
    """The actors of valid tokens by the digests of their secrets, for a few seconds."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Actor, float]] = {}
        self._lock = Lock()

    def get(self, digest: str) -> Actor | None:
        who, until = self._known.get(digest, (None, 0.0))
        return who if time.monotonic() < until else None

    def keep(self, digest: str, who: Actor, expires_at: datetime | None) -> None:
        seconds = REMEMBERED_SECONDS
        if expires_at is not None:
            seconds = min(seconds, (expires_at - datetime.now(expires_at.tzinfo)).total_seconds())
        with self._lock:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[digest] = who, time.monotonic() + seconds

    def forget(self, token_id: str | None = None) -> None:
        """Forget a token, or all of them."""
        with self._lock:
            kept = {} if token_id is None else {k: v for k, v in self._known.items() if v[0].token != token_id}
            self._known = kept


_remembered = _Remembered()
_looked_at: dict[str, tuple[bool, float]] = {}

_AS_SERVICE = Actor(name="service", project=None, scopes=frozenset())
"""In whose name tokens are looked up, before it is known who asks."""


@contextmanager
def _administered() -> Iterator[Engine]:
    """The store with the tokens that the one who asks administers."""
    who = replace(actor(), project=None) if administers_service() else actor()
    with acting(who), open_store() as engine:
        yield engine


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


Name = Annotated[str, Meta(min_length=1, max_length=100)]
Days = Annotated[float, Meta(gt=0, le=36_600)]


@operation("tokens.create", "POST", "/tokens", Scope.ADMIN, status=201)
def create_token(name: Name, scopes: Sequence[Scope], project: str | None = None, days: Days | None = None) -> NewToken:
    """Make a token. Its secret is in the answer, and shown nowhere else.

    scopes: what it allows, each with those before it; project: the own one where none is named; days: until it expires,
    never where none are given.
    """
    lifetime = None if days is None else timedelta(days=days)
    return make_token(name, scopes, project=project, lifetime=lifetime)


class WhoAmI(Struct, frozen=True, kw_only=True):
    """The one who asks.

    name: of the token, or the person; project: the one whose things are seen and made, null for all, as the user at
    the machine itself sees them; scopes: what is allowed; person: whether somebody signed in.
    """

    name: str
    project: str | None
    scopes: tuple[Scope, ...]
    person: bool


@operation("whoami.show", "GET", "/whoami", Scope.READ)
def who_am_i() -> WhoAmI:
    """Say who asks, in which project, and what is allowed."""
    who = actor()
    return WhoAmI(
        name=who.name, project=who.project, scopes=tuple(scope for scope in Scope if who.may(scope)), person=who.person
    )
