"""An operation: a function of a service, with the route under which a server offers it.

The command line calls operations like functions. They are carried out in this process, or by the server that
`cotrail --server` names: that is up to the door (`through`). A server makes its routes, its description and its table
of scopes from the same records, and so does the client. Parameters that stand in the path are sent there; the others in
the query of a GET or DELETE, and otherwise in a JSON object.
"""

import inspect
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any, Literal, Protocol, get_type_hints

from cotrail.services.access.actor import Scope
from cotrail.services.operations.route import HERE as HERE
from cotrail.services.operations.route import Method, P, R, Route

Answers = Literal["record", "stream", "events"]
"""What an operation answers: a record; pieces of a file; records that come as they are made."""


class Follows(Protocol):
    """What an operation answers whose events a server sends as they are made: records, each with its place as `id`."""

    def go_on_behind(self, event: str) -> None:
        """Begin behind the event of this id; raises InputError where it is none."""
        ...

    def batches(self, still_seconds: float) -> AsyncGenerator[tuple[Any, ...], None]:
        """Yield events, as many at once as there are; none where none come for so many seconds."""
        ...

    def close(self) -> None:
        """End the iteration where it is, from whichever thread."""
        ...


class Door(Protocol):
    """Carries out operations: in this process, or on a server."""

    @property
    def url(self) -> str | None:
        """The server's address; None of a door in this process."""

    def carry_out(self, operation: "Operation[Any, R]", arguments: Mapping[str, Any]) -> R:
        """What the operation answers; raises CotrailError."""
        ...


class Operation(Route[P, R]):
    """An operation.

    path: its route, with the names of parameters in braces; scope: what a token has to allow; status: of its answer.
    media_type: that of the pieces of a stream.
    again: answers again what was made, by its ids, where a request comes twice with one `Idempotency-Key`.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        method: Method,
        path: str,
        scope: Scope,
        status: int = 200,
        answers: Answers = "record",
        media_type: str = "application/json",
        again: Callable[[list[str]], R] | None = None,
    ) -> None:
        super().__init__(function, method, path)
        self.scope = scope
        self.status = status
        self.answers: Answers = answers
        self.media_type = media_type
        self.again = again
        OPERATIONS[self.name] = self

    @cached_property
    def answer_type(self) -> Any:
        """The type of its answer."""
        return get_type_hints(self.function)["return"]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Carry it out, wherever the door leads."""
        door = _door.get()
        if door is None:
            return self.function(*args, **kwargs)
        bound = inspect.signature(self.function).bind(*args, **kwargs).arguments
        return door.carry_out(self, {name: value for name, value in bound.items() if name in self.parameters})


OPERATIONS: dict[str, Operation[Any, Any]] = {}
"""The operations by their names, as far as their modules are imported (`cotrail.services.operations.registry`)."""

_door: ContextVar[Door | None] = ContextVar("door", default=None)


@contextmanager
def through(door: Door) -> Iterator[None]:
    """Have operations that the block calls be carried out through this door."""
    token = _door.set(door)
    try:
        yield
    finally:
        _door.reset(token)


def is_remote() -> bool:
    """Whether operations are carried out elsewhere."""
    return _door.get() is not None


def server_address() -> str | None:
    """The address of the server that carries out operations; None where this process does."""
    door = _door.get()
    return None if door is None else door.url


def operation(method: Method, path: str, scope: Scope, **further: Any) -> Callable[[Callable[P, R]], Operation[P, R]]:
    """Make an operation of a function; further: see `Operation`."""

    def make(function: Callable[P, R]) -> Operation[P, R]:
        return Operation(function, method=method, path=path, scope=scope, **further)

    return make
