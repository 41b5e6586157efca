"""Arguments of an operation, read from a request, and what it answers with, as JSON or as a stream.

All are compared with the types of the operation's parameters, so that refusals have the words of the command line.

Operations are carried out once, however often a client sends the request (`Idempotency-Key`).
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from functools import cache
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec
from litestar import Response
from litestar.exceptions import ClientException, HTTPException
from litestar.response import Stream
from msgspec import Struct, inspect
from msgspec.structs import replace

from cotrail.api.event_streams import while_allowed
from cotrail.api.origins import AnyRequest
from cotrail.common.nearest import unknown
from cotrail.common.printable_text import holds_nul
from cotrail.common.refusals import parts, refusal
from cotrail.common.text_files import MAX_DEPTH, too_deep
from cotrail.errors import InputError
from cotrail.models.records.idempotency import KeyedRequest, MadeBefore, made_before
from cotrail.services.actor import acting, actor
from cotrail.services.operations.operation import Operation, Route
from cotrail.services.store import reading

SLASH = "\ufdd0"
"""Stands for a slash within a part of a path, written as %2F. Unicode leaves this character to programs' own use."""

MAX_ITEMS = 200_000
"""The largest number of values in a body, those inside others too."""

JSON = "application/json"

_LISTS = (inspect.ListType, inspect.VarTupleType)


def arguments_of(
    operation: Route[..., Any], path: Mapping[str, str], query: bytes, content_type: str, body: bytes
) -> dict[str, Any]:
    """The arguments that a request gives; InputError where they can't be used, a HTTPException where not even read."""
    fields = _from_query(operation, query)
    if operation.takes_body:
        fields = _from_body(operation, content_type, body)
    return from_path(operation, path) | fields


@cache
def beside_type(operation: Route[..., Any]) -> type[Struct]:
    """The record of what isn't in the path: the operation's only such parameter, or one of all of them."""
    if operation.whole_body:
        whole: type[Struct] = operation.parameters[operation.whole_body].annotation
        return whole
    return _record(operation, operation.beside_path, "Body" if operation.takes_body else "Query")


def required(record: type[Struct]) -> bool:
    """Whether a record has fields without a default."""
    return any(field.required for field in msgspec.structs.fields(record))


def as_type(kind: type, value: Any) -> Any:
    """A value as a type that msgspec doesn't know, such as a path."""
    return kind(value)


def _record(operation: Route[..., Any], names: Sequence[str], what: str) -> type[Struct]:
    fields: list[Any] = []
    for name in names:
        parameter = operation.parameters[name]
        default = () if parameter.default is parameter.empty else (parameter.default,)
        fields.append((name, parameter.annotation, *default))
    title = "".join(part.title().replace("_", "") for part in operation.name.split("."))
    return msgspec.defstruct(f"{title}{what}", fields, frozen=True, kw_only=True, forbid_unknown_fields=True)


def from_path(operation: Route[..., Any], path: Mapping[str, str]) -> dict[str, Any]:
    """The arguments that stand in the path."""
    record = _path_type(operation)
    texts = {name: path[name].replace(SLASH, "/") for name in operation.in_path}
    return fields_of(
        used(record, {field.name: typed(texts[field.name], field.type) for field in record_fields(record)})
    )


def _from_query(operation: Route[..., Any], query: bytes) -> dict[str, Any]:
    """The query's parameters; where the operation takes a body, there must be none."""
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=1000)
    except ValueError as error:
        raise ClientException(f"the query isn't text in UTF-8 ({error}); encode it, and send at most 1,000") from error
    record = _NOTHING if operation.takes_body else beside_type(operation)
    fields = {field.name: field for field in record_fields(record)}
    values: dict[str, Any] = {}
    for name, number in Counter(name for name, _ in pairs).items():
        if name not in fields:
            raise InputError(f"{unknown('parameter', name, fields)}; leave it out of the query")
        texts = [text for each, text in pairs if each == name]
        if is_list(fields[name]):
            values[name] = texts
        elif number > 1:
            raise InputError(f"`{name}` stands {number} times in the query, and takes one value")
        else:
            values[name] = typed(texts[0], fields[name].type)
    return fields_of(used(record, values))


def _from_body(operation: Route[..., Any], content_type: str, body: bytes) -> dict[str, Any]:
    record = beside_type(operation)
    if not body.strip() and required(record):
        raise ClientException("the body is missing; send a JSON object")
    if body.strip() and content_type.partition(";")[0].strip().lower() != JSON:
        # Pages of other sites can send forms and plain text without asking; JSON they can't.
        raise HTTPException(status_code=415, detail=f"the body must be JSON; send it with `Content-Type: {JSON}`")
    value = used(record, _decoded(body) if body.strip() else {})
    return {operation.whole_body: value} if operation.whole_body else fields_of(value)


def _decoded(body: bytes) -> Any:
    """The JSON of a body, within bounds."""
    try:
        value = msgspec.json.decode(body)
    except RecursionError as error:
        raise ClientException(too_deep("the body")) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClientException(f"the body isn't valid JSON in UTF-8 ({error}); correct it") from error
    _check_bounds(value)
    if holds_nul(body):
        raise InputError("the body holds a NUL character (\\u0000), which can't be stored; take it out")
    return value


def _check_bounds(value: Any) -> None:
    level, count, depth = [value], 0, 0
    while level:
        level = [inner for each in level for inner in _inside(each)]
        count, depth = count + len(level), depth + 1
        if depth > MAX_DEPTH:
            raise ClientException(too_deep("the body"))
        if count > MAX_ITEMS:
            raise HTTPException(status_code=413, detail=f"the body has more than {MAX_ITEMS:,} values; divide it")


def _inside(value: Any) -> Any:
    match value:
        case dict():
            return value.values()
        case list():
            return value
    return ()


def used(record: type[Struct], value: Any) -> Any:
    """A value as a record; raises InputError."""
    try:
        return msgspec.convert(value, record, dec_hook=as_type)
    except msgspec.ValidationError as error:
        raise InputError(f"{refusal(error, record, value)}; correct it") from error


def typed(text: str, declared: inspect.Type | Any) -> Any:
    """A text of a path or a query as the JSON value that it stands for, where its type isn't text."""
    if "\0" in text:
        raise InputError("a parameter holds a NUL character, which can't be stored; take it out")
    if any(isinstance(each, (inspect.StrType, inspect.CustomType)) for each in parts(declared)):
        return text
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return text
    return text if value is None or isinstance(value, dict | list | str) else value


@cache
def _path_type(operation: Route[..., Any]) -> type[Struct]:
    return _record(operation, operation.in_path, "Path")


@cache
def record_fields(record: type[Struct]) -> tuple[inspect.Field, ...]:
    """The fields of a record with their types."""
    declared = inspect.type_info(record)
    return declared.fields if isinstance(declared, inspect.StructType) else ()


def is_list(field: inspect.Field) -> bool:
    """Whether a field takes several values."""
    return any(isinstance(each, _LISTS) for each in parts(field.type))


def fields_of(record: Struct) -> dict[str, Any]:
    """The values of a record by name."""
    return {name: getattr(record, name) for name in record.__struct_fields__}


_NOTHING = msgspec.defstruct("Nothing", [], forbid_unknown_fields=True)


# Answers that are sent piece by piece while they are made.

PIECE_BYTES = 2**16
"""Pieces are gathered until they have so many bytes: each is made in a thread, and sent on its own."""

Pieces = Generator[bytes, None, None]


def streamed(pieces: Pieces, media_type: str) -> Stream:
    """The answer of these pieces; what the first one raises is raised at once, so that the answer can say it.

    Where the token of the one who asks isn't valid any more, the answer breaks off.
    """
    sent = _sent(next(pieces, b""), _Gathering(pieces))
    return Stream(while_allowed(actor(), sent), media_type=media_type)


class _Gathering:
    """Gathers pieces in threads, one at a time."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._turn = Lock()

    def some(self) -> bytes:
        """The next pieces; empty where there are none."""
        gathered = bytearray()
        with self._turn:
            for piece in self._pieces:
                gathered += piece
                if len(gathered) >= PIECE_BYTES:
                    break
        return bytes(gathered)

    def close(self) -> None:
        """End the making of pieces, which gives back what it holds, such as a connection."""
        with self._turn:
            self._pieces.close()


async def _sent(first: bytes, gathering: _Gathering) -> AsyncGenerator[bytes, None]:
    try:
        yield first
        while piece := await asyncio.to_thread(gathering.some):
            yield piece
    finally:
        # Not awaited: where the client has gone, nothing may be awaited any more, and a piece may still be made.
        asyncio.get_running_loop().run_in_executor(None, gathering.close)


def answer_with(
    operation: Operation[Any, Any], request: AnyRequest, arguments: Mapping[str, Any], result: Any
) -> Response[Any]:
    """The answer to a request whose operation, with these arguments, has come to this result."""
    if operation.answers == "stream":
        return streamed(result, operation.media_type_of(arguments))
    content = msgspec.json.encode(result, enc_hook=str)
    headers = _links(request, result)
    if request.method != "GET":
        return Response(content, status_code=operation.status, media_type="application/json", headers=headers)
    tag = f'W/"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
    if _knows(request.headers.get("if-none-match", ""), tag):
        return Response(b"", status_code=304, headers={"ETag": tag})
    return Response(content, media_type="application/json", headers={**headers, "ETag": tag})


def _links(request: AnyRequest, result: Any) -> dict[str, str]:
    """The address of the next page of a list, whose record says behind which entry it begins."""
    after = getattr(result, "next_after", None)
    if after is None:
        return {}
    kept = [(name, value) for name, value in request.query_params.multi_items() if name != "after"]
    query = urlencode([*kept, ("after", after)])
    return {"Link": f'<{request.scope["path"]}?{query}>; rel="next"'}


def _knows(known: str, tag: str) -> bool:
    """Whether the client has this answer already (`If-None-Match`), by weak comparison."""
    return any(each.strip().removeprefix("W/") == tag.removeprefix("W/") for each in known.split(","))


LONGEST_KEY = 255

_MAKES = (201, 202)
"""The statuses of operations that make something."""


def once(
    operation: Operation[Any, Any], arguments: Mapping[str, Any], carry_out: Callable[[], Any], key: str | None
) -> Any:
    """Carry out an operation; where its request with this key was carried out before, answer what that made.

    An operation that makes nothing is carried out anyway: doing it twice changes nothing more. One that makes something
    and can't tell later what that was takes no key (InputError). ConflictError where the key was another request's.
    """
    check_key(operation, key)
    replayed = operation.replayed
    if key is None or replayed is None:
        return carry_out()
    if not (0 < len(key) <= LONGEST_KEY and key.isascii() and key.isprintable()):
        raise InputError(f"an Idempotency-Key has 1 to {LONGEST_KEY} printable ASCII characters")
    request = KeyedRequest(key, _digest(operation, arguments))
    with acting(replace(actor(), idempotency=(request.key, request.digest))):
        with reading() as connection:
            made = made_before(connection, request)
        if made is None:
            try:
                return carry_out()
            except MadeBefore as before:  # by a request that was under way when this one began
                made = before.made
        with reading() as connection:
            return replayed(connection, made)


def check_key(operation: Operation[Any, Any], key: str | None) -> None:
    """Raise InputError where a request has a key whose operation makes something each time that it is asked for."""
    makes = operation.status in _MAKES or (operation.answers == "events" and operation.method == "POST")
    if key is not None and makes and operation.replayed is None:
        raise InputError("this takes no Idempotency-Key, as it can't be asked for twice to the same effect")


def _digest(operation: Operation[Any, Any], arguments: Mapping[str, Any]) -> str:
    asked = msgspec.json.encode([operation.name, arguments], enc_hook=str, order="sorted")
    return hashlib.sha256(asked).hexdigest()
