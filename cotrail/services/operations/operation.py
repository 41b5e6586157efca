"""An operation: a function of a service, with the route under which a server offers it.

The command line calls operations like functions. They are carried out in this process, or by the server that
`cotrail --server` names: the transport decides (`through`). A server makes its routes, its description and its table
of scopes from the same records, and so does the client. Parameters that stand in the path are sent there; the others in
the query of a GET or DELETE, and otherwise in a JSON object.
"""

import inspect
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, update_wrapper
from types import MappingProxyType
from typing import Annotated, Any, Generic, Literal, ParamSpec, Protocol, TypeVar, get_type_hints

from msgspec import Struct

from cotrail.services.actor import Scope

P = ParamSpec("P")

R = TypeVar("R")

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

LOCAL_ONLY = "here"
"""Marks a parameter that stays in the process, such as a callback that reports progress: `Annotated[T, LOCAL_ONLY]`."""


class Route(Generic[P, R]):
    """A function with its method and its path, in which names of parameters stand in braces.

    name: that of its module and its own, unless it is given another.
    """

    def __init__(self, function: Callable[P, R], method: Method, path: str, name: str = "") -> None:
        update_wrapper(self, function)
        self.name = name or f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        self.function = function
        self.method: Method = method
        self.path = path

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        return self.function(*args, **kwargs)

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Its parameters, their annotations resolved, without those that stay in the process."""
        hints = get_type_hints(self.function, include_extras=True)
        every = inspect.signature(self.function).parameters
        here = {name for name, hint in hints.items() if LOCAL_ONLY in getattr(hint, "__metadata__", ())}
        sent = {name: each.replace(annotation=hints[name]) for name, each in every.items() if name not in here}
        return MappingProxyType(sent)

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        """The names of the parameters that stand in its path."""
        return tuple(name for name in self.parameters if f"{{{name}}}" in self.path)

    @cached_property
    def beside_path(self) -> tuple[str, ...]:
        """The names of the others."""
        return tuple(name for name in self.parameters if name not in self.in_path)

    @property
    def takes_body(self) -> bool:
        """Whether what isn't in the path is in a body, rather than in the query."""
        return self.method in ("POST", "PUT", "PATCH")

    @cached_property
    def whole_body(self) -> str | None:
        """The name of the parameter that is the whole body: the only one, where it is a record."""
        [*names] = self.beside_path
        sent = self.takes_body and len(names) == 1
        of = self.parameters[names[0]].annotation if sent else None
        return names[0] if isinstance(of, type) and issubclass(of, Struct) else None

    @property
    def has_body(self) -> bool:
        """Whether the others are sent as a JSON object."""
        return self.takes_body and bool(self.beside_path)


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
        """Stop iterating; thread-safe."""
        ...


class Transport(Protocol):
    """Carries out operations: in this process, or on a server."""

    @property
    def url(self) -> str | None:
        """The server's address; None of a transport in this process."""

    def carry_out(self, operation: "Operation[Any, R]", arguments: Mapping[str, Any]) -> R:
        """What the operation answers; raises CotrailError."""
        ...


class MediaTypes(Struct, frozen=True, kw_only=True):
    """The media types of a stream, by the values of one of its operation's parameters."""

    parameter: str
    types: Mapping[str, str]


class Operation(Route[P, R]):
    """An operation.

    name: its group's and its own, by which clients and descriptions call it; path: its route, with the names of
    parameters in braces; scope: what a token has to allow; status: of its answer.
    media_type: that of the pieces of a stream.
    own: whether the scope `submit` allows it of what was begun with the same token.
    replayed: answers, with a connection to the store, what was made, by its ids, where a request comes twice with one
        `Idempotency-Key`.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str,
        method: Method,
        path: str,
        scope: Scope,
        status: int = 200,
        answers: Answers = "record",
        media_type: str | MediaTypes = "application/json",
        own: bool = False,
        replayed: Callable[[Any, Sequence[str]], R] | None = None,
    ) -> None:
        super().__init__(function, method, path, name)
        self.scope = scope
        self.status = status
        self.answers: Answers = answers
        self.media_type = media_type
        self.own = own
        self.replayed = replayed
        OPERATIONS[self.name] = self

    @cached_property
    def answer_type(self) -> Any:
        """The type of its answer."""
        return get_type_hints(self.function)["return"]

    def media_type_of(self, arguments: Mapping[str, Any]) -> str:
        """The media type of its pieces, called with these."""
        if isinstance(self.media_type, str):
            return self.media_type
        name = self.media_type.parameter
        return self.media_type.types[arguments.get(name, self.parameters[name].default)]

    @property
    def keyed(self) -> bool:
        """Whether a request for it may come twice with one `Idempotency-Key`."""
        return self.replayed is not None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Carry it out, by the transport, if there is one."""
        transport = _transport.get()
        if transport is None:
            return self.function(*args, **kwargs)
        bound = inspect.signature(self.function).bind(*args, **kwargs).arguments
        return transport.carry_out(self, {name: value for name, value in bound.items() if name in self.parameters})


OPERATIONS: dict[str, Operation[Any, Any]] = {}
"""Operations by name, as far as their modules are imported (`cotrail.services.operations.all_operations`)."""

_transport: ContextVar[Transport | None] = ContextVar("transport", default=None)


@contextmanager
def through(transport: Transport) -> Iterator[None]:
    """Have operations that the block calls be carried out through this transport."""
    token = _transport.set(transport)
    try:
        yield
    finally:
        _transport.reset(token)


def is_remote() -> bool:
    """Whether operations are carried out elsewhere."""
    return _transport.get() is not None


def server_address() -> str | None:
    """The address of the server that carries out operations; None where this process does."""
    transport = _transport.get()
    return None if transport is None else transport.url


def operation(
    name: str, method: Method, path: str, scope: Scope, **further: Any
) -> Callable[[Callable[P, R]], Operation[P, R]]:
    """Make an operation of a function; further: see `Operation`."""

    def make(function: Callable[P, R]) -> Operation[P, R]:
        return Operation(function, name=name, method=method, path=path, scope=scope, **further)

    return make


App = Annotated[Callable[[], Any], LOCAL_ONLY]
"""Makes the Celery app, by which workers are asked."""


def current_app() -> Any:
    """The Celery app of this process (`cotrail.workers.celery_app`)."""
    import celery

    return celery.current_app
