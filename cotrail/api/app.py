"""The application: route handlers, made from the operations, errors, as pages for people too, and its description."""

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import unquote

from litestar import HttpMethod, Litestar, Response, Router, route
from litestar.concurrency import sync_to_thread
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.types import Message, Scope, Send

from cotrail import __version__
from cotrail.api import problems
from cotrail.api.access import PUBLIC, Access, Activities, idempotency_key, note_made, scope_guard
from cotrail.api.description import FORMER_VERSION as FORMER
from cotrail.api.description import Description
from cotrail.api.event_streams import follow, streams_end_first, tell
from cotrail.api.openai.routes import router as openai
from cotrail.api.origins import AnyRequest
from cotrail.api.pages import SIGN_IN, STATE, here_of, page_handlers, page_response, sign_in_page, wants_page
from cotrail.api.probes import PROBES
from cotrail.api.problems import ACTOR, Problem, tell_id
from cotrail.api.requests import SLASH, answer_with, arguments_of, check_key, once
from cotrail.api.uploads import HANDLERS as UPLOADS
from cotrail.configuration.settings import settings
from cotrail.errors import CotrailError
from cotrail.services.access.sign_in import configured
from cotrail.services.actor import ANYBODY, acting
from cotrail.services.library.named_files import moved
from cotrail.services.library.uploaded_files import UploadedPaths
from cotrail.services.operations.all_operations import OPERATIONS
from cotrail.services.operations.operation import Operation
from cotrail.viewer.page import Shown, placed


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
    return answer_with(operation, request, arguments, answer)


def route_path(operation: Operation[Any, Any]) -> str:
    """The operation's path as Litestar writes it."""
    path = operation.path
    for name in operation.in_path:
        path = path.replace(f"{{{name}}}", f"{{{name}:str}}")
    return path


E = TypeVar("E", bound=Exception)


def shown_to_people(handle: Callable[[AnyRequest, E], Response[Problem]]) -> Callable[[AnyRequest, E], Response[Any]]:
    """The handler of an error with a page for those who look with a browser; theirs says how to sign in."""

    def answer(request: AnyRequest, error: E) -> Response[Any]:
        response = handle(request, error)
        return _page(request, response) if wants_page(request) else response

    return answer


def _page(request: AnyRequest, response: Response[Problem]) -> Response[Any]:
    problem = response.content
    with acting(request.state.get(ACTOR, ANYBODY)):
        if problem.status == HTTPStatus.UNAUTHORIZED:
            return _sign_in(request, problem)
        shown = Shown(template="problem.html", values={"problem": problem})
        return page_response(shown, here_of(request), problem.status)


def _sign_in(request: AnyRequest, problem: Problem) -> Response[Any]:
    """The page for those who aren't signed in, after which they see what they wanted to; why they couldn't, if not."""
    if request.scope["path"].startswith("/auth/"):
        return sign_in_page(request, placed("/"), problem.detail)
    return sign_in_page(request, here_of(request).with_query() if request.method == "GET" else placed("/"))


HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # without any, browsers say of the origin of forms that it is null
    "X-Content-Type-Options": "nosniff",
}
"""The headers of every answer that doesn't set them itself."""

_ESCAPED_SLASH = re.compile("%2[Ff]")


class Service(Litestar):
    """The service, as an ASGI application."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request; HEAD as GET without the body, and %2F in a path as a part of a name."""
        if scope["type"] == "http":
            scope["path"] = _without_prefix(_path(scope.get("raw_path") or scope["path"].encode()))
            if scope["method"] == "HEAD":
                scope, send = {**scope, "method": "GET"}, _headers_alone(send)
        await super().__call__(scope, receive, send)


def application() -> Service:
    """The service; its limits are those of the settings."""
    described = Router("/v1/openapi", route_handlers=[], opt={PUBLIC: True}, include_in_schema=False)
    activities = Activities()
    return Service(
        [Router("/v1", route_handlers=[*handlers(), *UPLOADS]), openai(), *page_handlers(), *SIGN_IN, *PROBES],
        state=State({STATE: configured()}),
        middleware=[Access(activities)],
        before_send=[tell_id, _complete],
        lifespan=[activities.kept, streams_end_first],
        exception_handlers={
            CotrailError: shown_to_people(problems.of_error),
            HTTPException: shown_to_people(problems.of_http),
            Exception: shown_to_people(problems.of_bug),
        },
        openapi_config=OpenAPIConfig(
            title="cotrail",
            version=__version__,
            openapi_router=described,
            render_plugins=[Description(), Description("/openapi-3.1.json", FORMER)],
        ),
        request_max_body_size=settings().api_body_bytes,
        logging_config=None,
        debug=False,
    )


async def _complete(message: Message, _: Scope) -> None:
    """Add the headers that an answer hasn't."""
    if message["type"] != "http.response.start":
        return
    headers = list(message["headers"])
    there = {name.lower() for name, _ in headers}
    added = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
    message["headers"] = [*headers, *(each for each in added if each[0] not in there)]


def _path(raw: bytes) -> str:
    """A path as it was sent, with another character for the slashes that belong to names."""
    return SLASH.join(map(unquote, _ESCAPED_SLASH.split(raw.partition(b"?")[0].decode(errors="replace"))))


def _without_prefix(path: str) -> str:
    """The path below that under which a proxy shows the service, where it hands that on too."""
    prefix = settings().api_prefix
    return path.removeprefix(prefix) or "/" if prefix and (path == prefix or path.startswith(f"{prefix}/")) else path


def _headers_alone(send: Send) -> Send:
    """A way to send that ends an answer behind its headers; a stream, which may go on for hours, ends with that."""

    async def send_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return send_headers
