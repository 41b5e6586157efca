"""Route handlers, made from the operations: the parameters in the path, the query or the body, and the answer."""

import inspect
from collections.abc import Callable
from typing import Any

import msgspec
from litestar import HttpMethod, route
from litestar.handlers import HTTPRouteHandler
from litestar.response import ServerSentEvent
from msgspec import Struct

from cotrail.api.event_streams import event_stream
from cotrail.api.guards import needs
from cotrail.services.operations.operation import Operation
from cotrail.services.operations.registry import OPERATIONS

_BODY = "data"
"""The name by which Litestar gives a handler the body."""


def handlers() -> list[HTTPRouteHandler]:
    """A handler for each operation."""
    return [handler(operation) for operation in OPERATIONS.values()]


def handler(operation: Operation[Any, Any]) -> HTTPRouteHandler:
    """The handler of one operation."""
    streams = operation.answers == "events"
    return route(
        _path(operation),
        http_method=HttpMethod(operation.method),
        status_code=operation.status,
        guards=[needs(operation.scope)],
        opt={"operation": operation.name, "scope": operation.scope},
        operation_id=operation.name,
        summary=_summary(operation),
        description=inspect.getdoc(operation.function),
        tags=[operation.name.partition(".")[0]],
        sync_to_thread=None if streams else True,
    )(_function(operation))


def _path(operation: Operation[Any, Any]) -> str:
    path = operation.path
    for name in operation.in_path:
        path = path.replace(f"{{{name}}}", f"{{{name}:str}}")
    return path


def _summary(operation: Operation[Any, Any]) -> str:
    return (inspect.getdoc(operation.function) or "").partition("\n")[0]


def _function(operation: Operation[Any, Any]) -> Callable[..., Any]:
    """The operation as a function with the signature that Litestar reads."""
    body = _body_type(operation) if operation.has_body else None

    def carry_out(**given: Any) -> Any:
        fields = _fields(operation, given.pop(_BODY, None))
        return operation.function(**given, **fields)

    async def tell(**given: Any) -> ServerSentEvent:
        return await event_stream(iter(carry_out(**given)))

    named = operation.in_path if body else operation.parameters
    parameters = [operation.parameters[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in named]
    if body:
        parameters.append(inspect.Parameter(_BODY, inspect.Parameter.KEYWORD_ONLY, annotation=body))
    streams = operation.answers == "events"
    handle: Callable[..., Any] = tell if streams else carry_out
    answer = ServerSentEvent if streams else operation.answer_type
    handle.__signature__ = inspect.Signature(parameters, return_annotation=answer)  # type: ignore[attr-defined]
    handle.__annotations__ = _annotations(parameters) | {"return": answer}
    handle.__name__ = operation.name.replace(".", "_")
    return handle


def _annotations(parameters: list[inspect.Parameter]) -> dict[str, Any]:
    return {each.name: each.annotation for each in parameters}


def _fields(operation: Operation[Any, Any], body: Struct | None) -> dict[str, Any]:
    """The parameters that came in the body."""
    if body is None:
        return {}
    if operation.whole_body:
        return {operation.whole_body: body}
    return {name: getattr(body, name) for name in body.__struct_fields__}


def _body_type(operation: Operation[Any, Any]) -> Any:
    """The JSON object that the operation takes: a record that is its only parameter, or one of all parameters."""
    if operation.whole_body:
        return operation.parameters[operation.whole_body].annotation
    fields: list[Any] = []
    for name in operation.beside_path:
        parameter = operation.parameters[name]
        default = () if parameter.default is parameter.empty else (parameter.default,)
        fields.append((name, parameter.annotation, *default))
    title = "".join(part.capitalize() for part in operation.name.split("."))
    return msgspec.defstruct(f"{title}Body", fields, frozen=True, kw_only=True, forbid_unknown_fields=True)
