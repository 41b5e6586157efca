"""Route handlers, made from the operations: the parameters in the path, the query or the body, and the answer."""

import inspect
from collections.abc import Callable, Iterator
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from litestar import HttpMethod, route
from litestar.handlers import HTTPRouteHandler
from litestar.params import Body, PathParameter, QueryParameter
from litestar.response import Stream
from msgspec import Meta, Struct

from cotrail.api.guards import needs
from cotrail.api.streams import streamed
from cotrail.services.data.uploaded_folders import path_of
from cotrail.services.operations.files import moved
from cotrail.services.operations.operation import Operation
from cotrail.services.operations.registry import OPERATIONS

_BODY = "data"
"""The name by which Litestar gives a handler the body."""


def handlers() -> list[HTTPRouteHandler]:
    """A handler for each operation."""
    return [handler(operation) for operation in OPERATIONS.values()]


def handler(operation: Operation[Any, Any]) -> HTTPRouteHandler:
    """The handler of one operation."""
    return route(
        _path(operation),
        http_method=HttpMethod(operation.method),
        status_code=operation.status,
        media_type=operation.media_type,
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
    body_type = _body_type(operation) if operation.has_body else None

    def carry_out(**given: Any) -> Any:
        body = given.pop(_BODY, None)
        arguments = given | _fields(operation, body)
        answer = operation.function(**{name: moved(value, path_of) for name, value in arguments.items()})
        return streamed(answer, operation.media_type) if operation.answers == "stream" else answer

    named = operation.in_path if body_type else operation.parameters
    parameters = [_parameter(operation, name) for name in named]
    if body_type:
        parameters.append(
            inspect.Parameter(_BODY, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[body_type, Body()])
        )
    answer_type = Stream if operation.answers == "stream" else operation.answer_type
    carry_out.__signature__ = inspect.Signature(parameters, return_annotation=answer_type)  # type: ignore[attr-defined]
    carry_out.__annotations__ = _annotations(parameters) | {"return": answer_type}
    carry_out.__name__ = operation.name.replace(".", "_")
    return carry_out


def _parameter(operation: Operation[Any, Any], name: str) -> inspect.Parameter:
    given = operation.parameters[name]
    # Litestar reads the bounds of a parameter from its own mark alone.
    bounds = next(_marks(given.annotation), Meta())
    place = (PathParameter if name in operation.in_path else QueryParameter)(ge=bounds.ge, le=bounds.le)
    return given.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[given.annotation, place])


def _marks(annotation: Any) -> Iterator[Meta]:
    """The bounds of a parameter, which may be left out."""
    for each in get_args(annotation):
        if isinstance(each, Meta):
            yield each
        elif get_origin(annotation) in (Union, UnionType):
            yield from _marks(each)


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
