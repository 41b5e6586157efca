"""The one who asks: a program with a token, a person who signed in, or the user of the machine itself."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum

from msgspec import Struct

from cotrail.models.schema.states import DEFAULT_PROJECT


class Scope(StrEnum):
    """What a token allows; each includes those before it."""

    READ = "read"
    """To look at runs, corpora, models, scores, traces."""
    SUBMIT = "submit"
    """To begin work: runs, questions, corpora, experiments."""
    OPERATE = "operate"
    """To change or end what others began: pause, cancel, retry, prune, remove."""
    ADMIN = "admin"
    """To manage tokens and projects."""


class Actor(Struct, frozen=True, kw_only=True):
    """Who asks.

    project: the one whose things are seen and made; None: all are seen, and the default project's are made.
    token: the id of the token; person: whether a browser's session stands for somebody who signed in.
    idempotency: the key of the request and the digest of what it asks for; None where there is no key, or the
        operation makes nothing (`cotrail.services.operations.all_operations`).
    """

    name: str
    project: str | None
    scopes: frozenset[Scope]
    token: str | None = None
    person: bool = False
    idempotency: tuple[str, str] | None = None

    def may(self, scope: Scope) -> bool:
        """Whether this is allowed."""
        return scope in self.scopes


ALL_SCOPES = frozenset(Scope)

ANYBODY = Actor(name="anybody", project=DEFAULT_PROJECT, scopes=frozenset())
"""Who showed no token: may do nothing."""

LOCAL = Actor(name="local", project=None, scopes=ALL_SCOPES)
"""The user who runs a command on the machine itself."""


def scopes_up_to(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """The scopes with those that they include."""
    most = max(map(list(Scope).index, scopes), default=-1)
    return frozenset(list(Scope)[: most + 1])


_current: ContextVar[Actor] = ContextVar("actor", default=LOCAL)


def actor() -> Actor:
    """The one in whose name this thread works."""
    return _current.get()


@contextmanager
def acting(who: Actor) -> Iterator[None]:
    """Have the block work in that one's name."""
    token = _current.set(who)
    try:
        yield
    finally:
        _current.reset(token)
