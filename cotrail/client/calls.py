"""Calls of operations as requests over HTTP, and their answers as records or errors."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar, get_args
from urllib.parse import quote

import msgspec
from msgspec import Struct

from cotrail import errors
from cotrail.common.nearest import slug
from cotrail.errors import CotrailError, UnavailableError
from cotrail.services.library.named_files import moved
from cotrail.services.operations.event_names import PROBLEM


class OperationFacts(Protocol):
    """Facts of an operation: `cotrail.services.operations.operation.Operation` has them, and more."""

    @property
    def method(self) -> str:
        """The method of the request."""

    @property
    def path(self) -> str:
        """Its path, in which names of parameters stand in braces."""

    @property
    def in_path(self) -> tuple[str, ...]:
        """These names."""

    @property
    def whole_body(self) -> str | None:
        """The name of the parameter that is the whole body."""

    @property
    def has_body(self) -> bool:
        """Whether parameters that aren't in the path stand in a body."""

    @property
    def keyed(self) -> bool:
        """Whether the request may come twice with one `Idempotency-Key`."""

    @property
    def answers(self) -> str:
        """`record`, `stream` or `events`."""

    @property
    def answer_type(self) -> Any:
        """The type of the answer."""


class RemoteOperation(Struct, frozen=True, kw_only=True):
    """The same of an operation that isn't there itself; its answer is a record of the client's."""

    method: str
    path: str
    in_path: tuple[str, ...]
    whole_body: str | None
    has_body: bool
    keyed: bool
    answers: str
    answer_type: Any


PREFIX = "/v1"
KEY = "Idempotency-Key"

EVENT, DATA = "event:", "data:"

R = TypeVar("R")


class Call(Struct, frozen=True, kw_only=True):
    """A request: method, path, query, headers, and body of this type."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    media_type: str = "application/json"

    @property
    def repeatable(self) -> bool:
        """Whether it may be sent again where its answer is lost: the second time changes nothing more."""
        return self.method in ("GET", "PUT", "DELETE") or any(name == KEY for name, _ in self.headers)


class _Problem(Struct, frozen=True, kw_only=True):
    """What a server says went wrong (`cotrail.api.problems`)."""

    type: str = ""
    detail: str = ""
    notes: tuple[str, ...] = ()


def call_of(operation: OperationFacts, arguments: Mapping[str, Any], upload: Callable[[str], str]) -> Call:
    """The request for an operation; upload: sends a file and returns the digest that stands for it."""
    sent = {name: moved(value, upload) for name, value in arguments.items()}
    places = {name: quote(str(sent.pop(name)), safe="") for name in operation.in_path}
    path = f"{PREFIX}{operation.path.format(**places)}"
    if operation.method not in ("POST", "PUT", "PATCH"):
        return Call(method=operation.method, path=path, query=tuple(_query(sent)))
    content = sent[operation.whole_body] if operation.whole_body else sent
    body = msgspec.json.encode(content, enc_hook=str) if operation.has_body else None
    key = ((KEY, str(uuid.uuid4())),) if operation.keyed else ()
    return Call(method=operation.method, path=path, headers=key, body=body)


def answer_of(operation: OperationFacts, content: bytes) -> Any:
    """The operation's answer."""
    return msgspec.json.decode(content, type=operation.answer_type)


def event_reader(operation: OperationFacts) -> Callable[[str], Any]:
    """What returns the record in a line of a stream of server-sent events, None where the line has none.

    Each event has its record in one line. It raises the error that the event of a problem tells of.
    """
    [of] = get_args(operation.answer_type)
    decoder = msgspec.json.Decoder(of)
    name = ""

    def read(line: str) -> Any:
        nonlocal name
        if line.startswith(EVENT):
            name = line.removeprefix(EVENT).strip()
        return record_of(decoder, name, line.removeprefix(DATA)) if line.startswith(DATA) else None

    return read


def record_of(decoder: msgspec.json.Decoder[R], name: str, data: str) -> R:
    """The record of an event; raises the error that the event of a problem tells of, by which a stream ends."""
    if name == PROBLEM:
        raise error_of(0, data.encode())
    return decoder.decode(data)


def error_of(status: int, content: bytes, seconds: float | None = None) -> CotrailError:
    """The error that an answer tells of: of the same kind as where the operation is carried out here.

    seconds: the pause that the server asks for.
    """
    try:
        problem = msgspec.json.decode(content, type=_Problem)
    except msgspec.DecodeError:
        return UnavailableError(f"the server answered with status {status}, and not as cotrail does; check the address")
    kind = _KINDS.get(problem.type.rpartition("#")[2], CotrailError)
    error = _error(kind, problem.detail, seconds)
    for note in problem.notes:
        error.add_note(note)
    return error


def _error(kind: type[CotrailError], detail: str, seconds: float | None) -> CotrailError:
    if issubclass(kind, errors.TooManyRequestsError):
        return kind(detail, 1.0 if seconds is None else seconds)
    return kind(detail, seconds) if issubclass(kind, UnavailableError) else kind(detail)


def _query(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in arguments.items():
        for each in value if isinstance(value, list | tuple) else [value]:
            if each is not None:
                yield name, str(each).lower() if isinstance(each, bool) else str(each)


def _slugs() -> dict[str, type[CotrailError]]:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, CotrailError)]
    return {slug(each.__name__): each for each in kinds}


_KINDS = _slugs()
