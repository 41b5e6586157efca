"""Route handlers, made from the operations."""

import inspect
from typing import Any

from litestar import HttpMethod, Request, Response, route
from litestar.concurrency import sync_to_thread
from litestar.handlers import HTTPRouteHandler

from cotrail.api.answers import answer_with
from cotrail.api.guards import needs
from cotrail.api.requests import arguments_of
from cotrail.services.operations.operation import Operation
from cotrail.services.operations.registry import OPERATIONS

AnyRequest = Request[Any, Any, Any]


def handlers() -> list[HTTPRouteHandler]:
    """A handler for each operation."""
    return [handler(operation) for operation in OPERATIONS.values()]


def handler(operation: Operation[Any, Any]) -> HTTPRouteHandler:
    """The handler of one operation; `cotrail.api.description` describes it."""

    async def answer(request: AnyRequest) -> Response[Any]:
        content_type = request.headers.get("content-type", "")
        body = await request.body()
        query = request.scope["query_string"]
        arguments = arguments_of(operation, request.path_params, query, content_type, body)
        return answer_with(operation, request, await sync_to_thread(operation.function, **arguments))

    return route(
        route_path(operation),
        http_method=HttpMethod(operation.method),
        status_code=operation.status,
        guards=[needs(operation.scope)],
        opt={"operation": operation.name, "scope": operation.scope},
        operation_id=operation.name,
        include_in_schema=False,
    )(answer)


def route_path(operation: Operation[Any, Any]) -> str:
    """The operation's path as Litestar writes it."""
    path = operation.path
    for name in operation.in_path:
        path = path.replace(f"{{{name}}}", f"{{{name}:str}}")
    return path


def summary_of(operation: Operation[Any, Any]) -> str:
    """The first line of the operation's docstring."""
    return (inspect.getdoc(operation.function) or "").partition("\n")[0]
