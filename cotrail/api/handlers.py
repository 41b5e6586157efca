"""Route handlers, made from the operations."""

from collections.abc import Mapping
from typing import Any

from litestar import HttpMethod, Response, route
from litestar.concurrency import sync_to_thread
from litestar.handlers import HTTPRouteHandler

from cotrail.api.access import idempotency_key, scope_guard
from cotrail.api.activities import note_made
from cotrail.api.event_streams import follow, tell
from cotrail.api.origins import AnyRequest
from cotrail.api.requests import answer_with, arguments_of
from cotrail.services.library.named_files import moved
from cotrail.services.library.uploaded_files import UploadedPaths
from cotrail.services.operations.all_operations import OPERATIONS
from cotrail.services.operations.once import check_key, once
from cotrail.services.operations.operation import Operation


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
        if operation.answers == "events":
            return await _told(operation, arguments, request)
        return await sync_to_thread(_carry_out, operation, arguments, request)

    return route(
        route_path(operation),
        http_method=HttpMethod(operation.method),
        status_code=operation.status,
        guards=[scope_guard(operation.scope, own=operation.own)],
        opt={"operation": operation.name, "scope": operation.scope},
        operation_id=operation.name,
        include_in_schema=False,
    )(answer)


async def _told(operation: Operation[Any, Any], arguments: Mapping[str, Any], request: AnyRequest) -> Response[Any]:
    """The events of an operation as they come; those of what is there already can be gone on with."""
    if operation.method == "GET":
        return await follow(request, operation, arguments)
    check_key(operation, idempotency_key.get())
    found = await sync_to_thread(_found, arguments)
    return await tell(request, iter(operation.function(**found)))


def _found(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with uploaded files by their paths."""
    uploaded = UploadedPaths()
    return {name: moved(value, uploaded.path_of) for name, value in arguments.items()}


def _carry_out(operation: Operation[Any, Any], arguments: Mapping[str, Any], request: AnyRequest) -> Response[Any]:
    """Carry out the operation on uploaded files, in a thread."""

    def here() -> Any:
        return operation.function(**_found(arguments))

    answer = once(operation, arguments, here, idempotency_key.get())
    note_made(answer)
    return answer_with(operation, request, answer)


def route_path(operation: Operation[Any, Any]) -> str:
    """The operation's path as Litestar writes it."""
    path = operation.path
    for name in operation.in_path:
        path = path.replace(f"{{{name}}}", f"{{{name}:str}}")
    return path
