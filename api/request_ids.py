"""Ids of requests, under which the service logs them and which its answers name."""

import uuid
from contextvars import ContextVar

from litestar.datastructures import MutableScopeHeaders
from litestar.types import Message, Scope

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is being answered."""


def id_of(scope: Scope) -> str:
    """The id of a request."""
    return str(scope["state"].setdefault("request_id", str(uuid.uuid4())))


async def tell_id(message: Message, scope: Scope) -> None:
    """Say in an answer under which id its request is logged; called before anything is sent."""
    if message["type"] == "http.response.start":
        MutableScopeHeaders.from_message(message)["X-Request-Id"] = id_of(scope)
