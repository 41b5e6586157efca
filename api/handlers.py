"""Route handlers, made from the operations: the parameters in the path, the query or the body, and the answer."""

import inspect
from collections.abc import Callable
from typing import Any

import msgspec
from litestar import HttpMethod, route
from litestar.handlers import HTTPRouteHandler
from msgspec import Struct

from cotrail.api.guards import needs
from cotrail.api.live import follow_route
from cotrail.services.operations.operation import Operation
from cotrail.services.operations.registry import OPERATIONS

_BODY = "data"
"""The name by which Litestar gives a handler the body."""


def handlers() -> list[HTTPRouteHandler]:
    """A handler for each operation; those that answer events can be gone on with where they are GET."""
    followed = {each.name for each in OPERATIONS.values() if each.answers == "events" and each.method == "GET"}
    return [follow_route(each) if each.name in followed else handler(each) for each in OPERATIONS.values()]


def handler(operation: Operation[Any, Any]) -> HTTPRouteHandler:
    """The handler of one operation."""
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
        sync_to_thread=True,
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
        return operation.function(**given, **_fields(operation, given.pop(_BODY, None)))

    named = operation.in_path if body else operation.parameters
    parameters = [operation.parameters[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in named]
    if body:
        parameters.append(inspect.Parameter(_BODY, inspect.Parameter.KEYWORD_ONLY, annotation=body))
    carry_out.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        parameters, return_annotation=operation.answer_type
    )
    carry_out.__annotations__ = _annotations(parameters) | {"return": operation.answer_type}
    carry_out.__name__ = operation.name.replace(".", "_")
    return carry_out


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
