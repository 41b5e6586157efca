"""All requests that could make Flower do something, taken from its own list of pages."""

import base64
import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from msgspec import Struct

WRITING = ("POST", "PUT", "PATCH", "DELETE")
BODY = json.dumps({"args": [1, 1]})
ARGUMENTS = "workername={worker}&queue=extra&n=1&min=1&max=9&soft=1&hard=1&ratelimit=1&terminate=true&signal=SIGKILL"


class Control(Struct, frozen=True):
    """A request; serves: whether Flower has a handler for it, and doesn't only reject the method."""

    method: str
    path: str
    serves: bool


def controls(worker: str) -> Iterator[Control]:
    """Every request to the API that isn't read-only, with all its parameters."""
    from flower.urls import handlers
    from tornado.routing import URLSpec

    for entry in handlers:
        pattern, handler = (entry.regex.pattern, entry.handler_class) if isinstance(entry, URLSpec) else entry[:2]
        if not pattern.startswith("/api/"):
            continue
        path = f"{_path(pattern, worker)}?{ARGUMENTS.format(worker=quote(worker))}"
        yield from (Control(method, path, _serves(handler, method)) for method in WRITING)
        if not _serves(handler, "GET"):
            yield Control("GET", path, serves=False)


def ask(port: int, method: str, path: str, credentials: str | None = None, **headers: str) -> int:
    """The status of Flower's answer; 0 where there is none."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if credentials is not None:
        headers["Authorization"] = f"Basic {base64.b64encode(credentials.encode()).decode()}"
    try:
        connection.request(method, path, BODY if method in WRITING else None, headers)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def fetch(port: int, path: str, credentials: str) -> bytes:
    """Flower's whole answer, with any status."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        headers = {"Authorization": f"Basic {base64.b64encode(credentials.encode()).decode()}"}
        connection.request("GET", path, headers=headers)
        return connection.getresponse().read()
    finally:
        connection.close()


def _path(pattern: str, worker: str) -> str:
    value = worker if pattern.startswith("/api/worker/") else "cotrail.retrieve"
    return pattern.replace("(.+)", quote(value)).replace("(.*)", quote(value))


def _serves(handler: Any, method: str) -> bool:
    from tornado.web import RequestHandler

    name = method.lower()
    return getattr(handler, name) is not getattr(RequestHandler, name)
