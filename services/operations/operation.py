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
from functools import cached_property, update_wrapper
from types import MappingProxyType
from typing import Annotated, Any, Generic, Literal, ParamSpec, Protocol, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct

from cotrail.services.access.actor import Scope

P = ParamSpec("P")
R = TypeVar("R")

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

HERE = "here"
"""Marks a parameter that stays in the process, such as a callback that reports progress: `Annotated[T, HERE]`."""

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

    def carry_out(self, operation: "Operation[Any, R]", arguments: Mapping[str, Any]) -> R:
        """What the operation answers; raises CotrailError."""
        ...


class Operation(Generic[P, R]):
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
        update_wrapper(self, function)
        self.function = function
        self.method: Method = method
        self.path = path
        self.scope = scope
        self.status = status
        self.answers: Answers = answers
        self.media_type = media_type
        self.again = again
        OPERATIONS[self.name] = self

    @property
    def name(self) -> str:
        """Its name: that of its module and its function."""
        return f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}"

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Its parameters, their annotations resolved, without those that stay in the process."""
        hints = get_type_hints(self.function, include_extras=True)
        every = inspect.signature(self.function).parameters
        sent = {name: each.replace(annotation=hints[name]) for name, each in every.items() if not _is_here(hints[name])}
        return MappingProxyType(sent)

    @cached_property
    def answer_type(self) -> Any:
        """The type of its answer."""
        return get_type_hints(self.function)["return"]

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        """The names of the parameters that stand in its path."""
        return tuple(name for name in self.parameters if f"{{{name}}}" in self.path)

    @cached_property
    def beside_path(self) -> tuple[str, ...]:
        """The names of the others."""
        return tuple(name for name in self.parameters if name not in self.in_path)

    @cached_property
    def whole_body(self) -> str | None:
        """The name of the parameter that is the whole body: the only one, where it is a record."""
        [*names] = self.beside_path
        sent = self.method in ("POST", "PUT", "PATCH") and len(names) == 1
        of = self.parameters[names[0]].annotation if sent else None
        return names[0] if isinstance(of, type) and issubclass(of, Struct) else None

    @property
    def has_body(self) -> bool:
        """Whether the others are sent as a JSON object."""
        return self.method in ("POST", "PUT", "PATCH") and bool(self.beside_path)

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


def operation(method: Method, path: str, scope: Scope, **further: Any) -> Callable[[Callable[P, R]], Operation[P, R]]:
    """Make an operation of a function; further: see `Operation`."""

    def make(function: Callable[P, R]) -> Operation[P, R]:
        return Operation(function, method=method, path=path, scope=scope, **further)

    return make


def _is_here(annotation: Any) -> bool:
    return get_origin(annotation) is Annotated and HERE in get_args(annotation)[1:]
