"""The description of the service as an OpenAPI document, in its version and the former one.

There are two: OpenAPI 3.2 describes each event of streams; 3.1, which generators of clients read, only that they come.

Litestar describes its own routes. Those of operations are described here: msgspec's schemas are exact, and each answer
that an operation may give is named, errors as `Problem`.
"""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

import msgspec
from litestar import Litestar, Request
from litestar.openapi.plugins import OpenAPIRenderPlugin
from litestar.routes import HTTPRoute
from msgspec import Struct

from cotrail.api.event_streams import MEDIA_TYPE as EVENT_STREAM
from cotrail.api.problems import MEDIA_TYPE, Problem
from cotrail.api.requests import JSON, LONGEST_KEY, beside_type, required
from cotrail.services.operations.all_operations import OPERATIONS
from cotrail.services.operations.operation import Operation
from cotrail.services.runs.requests import described

# The description in OpenAPI 3.1, for generators of clients: the same routes, with less said of some values.

FORMER_VERSION = "3.1.1"

ITEM_SCHEMA = "itemSchema"
"""The key of a media type of OpenAPI 3.2 under which stands what one event of a stream is."""

BINARY = {"type": "string", "format": "binary"}
"""Bytes, as generators know them."""


def former(document: Mapping[str, Any]) -> dict[str, Any]:
    """A description in OpenAPI 3.1, from one in 3.2."""
    copy: dict[str, Any] = _with_items_alike(document)
    for content in _contents(copy):
        content |= {media_type: _with_schema(media_type, said) for media_type, said in content.items()}
    return copy | {"openapi": FORMER_VERSION}


def _with_items_alike(part: Any) -> Any:
    """A copy of a part of a document in which each item of an array may be what any of them is."""
    if isinstance(part, list):
        return [_with_items_alike(each) for each in part]
    if not isinstance(part, Mapping):
        return part
    copy = {key: _with_items_alike(value) for key, value in part.items()}
    if "prefixItems" in copy:
        kinds = copy.pop("prefixItems")
        distinct = [each for place, each in enumerate(kinds) if each not in kinds[:place]]
        copy["items"] = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
    return copy


def _contents(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What bodies and answers may be, by media type."""
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    said = [*(each["responses"] for each in operations), document["components"]["responses"]]
    bodies = [each["requestBody"] for each in operations if "requestBody" in each]
    answers = [answer for answers in said for answer in answers.values()]
    yield from (each["content"] for each in (*bodies, *answers) if "content" in each)


def _with_schema(media_type: str, said: Mapping[str, Any]) -> dict[str, Any]:
    if ITEM_SCHEMA in said:
        return {"schema": {"type": "string"}}
    return {"schema": {} if media_type == JSON else BINARY, **said}


EVENTS = "Server-sent events: `data` is one such record as JSON, `event` its type, `id` its place for `Last-Event-ID`."
VERSION = "3.2.0"
"""The first version of OpenAPI that describes streams (`itemSchema`)."""

SCOPE, NONE = "x-scope", "none"
"""The key of a route under which stands what a token has to allow, and what stands there where it needs none."""

IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same request with the same key again makes nothing more, and answers what the first made.",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": "^[!-~]+$"},
}

_PREFIX = "/v1"
_REFERENCE = "#/components/schemas/{name}"
_PROBLEMS = {"4XX": {"$ref": "#/components/responses/Refused"}, "5XX": {"$ref": "#/components/responses/Failed"}}
_AS_OPENAI = {key: {"description": "An error in OpenAI's form.", "content": {JSON: {}}} for key in _PROBLEMS}
_RESPONSES = {
    "Refused": "The request can't be read, isn't allowed, or can't be used; `detail` says what to do.",
    "Failed": "The service, or something that it needs, failed.",
}


class Description(OpenAPIRenderPlugin):
    """Serves the document."""

    def __init__(self, path: str = "/openapi.json", version: str = VERSION) -> None:
        super().__init__(path=path, media_type="application/vnd.oai.openapi+json")  # type: ignore[arg-type]
        self._version = version

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """The document as JSON."""
        return msgspec.json.encode(description(request.app, openapi_schema, self._version))


def description(app: Litestar, own: Mapping[str, Any], version: str = VERSION) -> dict[str, Any]:
    """The whole document in a version of OpenAPI.

    own: what Litestar says of the routes that aren't operations.
    """
    whole = _newest(_scopes(app), own)
    return whole if version == VERSION else former(whole)


def _scopes(app: Litestar) -> dict[str, str]:
    """What a token has to allow, by the ids of routes."""
    handlers = (each for route in app.routes if isinstance(route, HTTPRoute) for each in route.route_handlers)
    return {str(each.opt["operation"]): str(each.opt["scope"]) for each in handlers if "operation" in each.opt}


def _newest(scopes: Mapping[str, str], own: Mapping[str, Any]) -> dict[str, Any]:
    schemas, components = _schemas()
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(own))
    paths = document.setdefault("paths", {})
    for each in [each for path in paths.values() for each in path.values()]:
        if not isinstance(each, dict) or "responses" not in each:
            continue
        refused = _AS_OPENAI if "openai" in each.get("tags", ()) else _PROBLEMS
        each[SCOPE] = scopes.get(each["operationId"], NONE)
        each["responses"] = {status: said for status, said in each["responses"].items() if status < "4"} | refused
    for operation in OPERATIONS.values():
        paths.setdefault(f"{_PREFIX}{operation.path}", {})[operation.method.lower()] = _described(operation, schemas)
    parts = document.setdefault("components", {})
    parts["schemas"] = dict(sorted((parts.get("schemas", {}) | components).items()))
    parts["responses"] = {name: _answer(said, MEDIA_TYPE, schemas["Problem"]) for name, said in _RESPONSES.items()}
    parts["parameters"] = {"IdempotencyKey": IDEMPOTENCY_KEY}
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return document | {"openapi": VERSION, "paths": dict(sorted(paths.items())), "security": [{"token": []}, {}]}


def _schemas() -> tuple[dict[str, Any], dict[str, Any]]:
    """The schemas of all answers and bodies by the names of their operations, and the components that they refer to."""
    types: dict[str, Any] = {"Problem": Problem}
    for operation in OPERATIONS.values():
        types[operation.name] = _item(operation)
        types[f"{operation.name} fields"] = beside_type(operation)
        types |= {f"{operation.name} {name}": operation.parameters[name].annotation for name in operation.in_path}
    schemas, components = _components(types.values())
    for record in types.values():
        if isinstance(record, type) and issubclass(record, Struct):
            _describe_fields(record, components.get(record.__name__, {}).get("properties", {}))
    return dict(zip(types, schemas, strict=True)), dict(components)


def _components(types: Iterable[Any]) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """The schemas of types, and the components that they refer to."""
    return msgspec.json.schema_components(types, schema_hook=lambda _: {"type": "string"}, ref_template=_REFERENCE)


def _item(operation: Operation[Any, Any]) -> Any:
    """The type of an answer, or of each record of a stream of them."""
    if operation.answers == "record":
        return operation.answer_type
    return next(iter(get_args(operation.answer_type)), Any) if operation.answers == "events" else bytes


def _describe_fields(record: type[Struct], properties: dict[str, Any]) -> None:
    """Add what is said of fields to people who give them as options."""
    for field in msgspec.structs.fields(record):
        if meaning := described(record, field).get("meaning"):
            properties[field.encode_name]["description"] = meaning


def _described(operation: Operation[Any, Any], schemas: Mapping[str, Any]) -> dict[str, Any]:
    names = [(name, schemas[f"{operation.name} {name}"]) for name in operation.in_path]
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": _part(schema)} for name, schema in names
    ]
    if operation.keyed:
        parameters.append({"$ref": "#/components/parameters/IdempotencyKey"})
    body = {}
    if operation.takes_body:
        content = {JSON: {"schema": schemas[f"{operation.name} fields"]}}
        body = {"requestBody": {"content": content, "required": required(beside_type(operation))}}
    else:
        parameters += _query(beside_type(operation))
    return {
        "operationId": operation.name,
        "summary": (inspect.getdoc(operation.function) or "").partition("\n")[0],
        "description": inspect.getdoc(operation.function),
        "tags": [operation.name.partition(".")[0]],
        SCOPE: operation.scope,
        "parameters": parameters,
        **body,
        "responses": {str(operation.status): _success(operation, schemas[operation.name]), **_PROBLEMS},
    }


def _part(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a part of a path: it isn't empty."""
    return {"minLength": 1, **schema} if schema.get("type") == "string" else schema


def _query(record: type[Struct]) -> list[dict[str, Any]]:
    _, components = _components([record])
    fields = components[record.__name__]
    return [
        {"name": name, "in": "query", "required": name in fields["required"], "schema": _asked(each)}
        for name, each in fields["properties"].items()
    ]


def _asked(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a query's parameter: one that may be null is left out instead."""
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) != len(schema.get("anyOf", ())):
        schema = choices[0] if len(choices) == 1 else {"anyOf": choices}
    return schema


def _success(operation: Operation[Any, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    if operation.answers == "record":
        answer = _answer("What was asked for.", JSON, schema)
        if operation.method == "GET":
            answer["headers"] = {"ETag": {"schema": {"type": "string"}}}
        return answer
    if operation.answers == "events":
        return {"description": EVENTS, "content": {EVENT_STREAM: {ITEM_SCHEMA: _event(schema)}}}
    types = operation.media_type
    kinds = (types,) if isinstance(types, str) else dict.fromkeys(types.types.values())
    return {"description": "A stream.", "content": {each: {"schema": BINARY} for each in kinds}}


def _event(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an event of a stream, as OpenAPI 3.2 has it: its fields, of which `data` holds the record."""
    data = {"type": "string", "contentMediaType": JSON, "contentSchema": schema}
    return {
        "type": "object",
        "required": ["event", "data"],
        "properties": {"event": {"type": "string"}, "id": {"type": "string"}, "data": data},
    }


def _answer(said: str, media_type: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": said, "content": {media_type: {"schema": schema}}}
