"""The application: routes, errors, description."""

import re
from typing import Any
from urllib.parse import unquote

from litestar import Litestar, Router
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig
from litestar.types import Message, Scope, Send

from cotrail import __version__
from cotrail.api import problems
from cotrail.api.access import PUBLIC, Access
from cotrail.api.activities import Activities
from cotrail.api.description import FORMER_VERSION as FORMER
from cotrail.api.description import Description
from cotrail.api.event_streams import streams_end_first
from cotrail.api.handlers import handlers
from cotrail.api.openai.routes import router as openai
from cotrail.api.page_problems import shown_to_people
from cotrail.api.pages import page_handlers
from cotrail.api.probes import PROBES
from cotrail.api.problems import tell_id
from cotrail.api.requests import SLASH
from cotrail.api.sign_in import SIGN_IN, STATE
from cotrail.api.uploads import HANDLERS as UPLOADS
from cotrail.configuration.settings import settings
from cotrail.errors import CotrailError
from cotrail.services.access.sign_in import configured

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
