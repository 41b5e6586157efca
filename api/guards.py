"""Guards of routes: whether the one who asks may."""

from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard

from cotrail.errors import ForbiddenError
from cotrail.services.access.actor import Scope, actor


def needs(scope: Scope) -> Guard:
    """A guard of routes that a token must allow this for."""

    def check(_: ASGIConnection[Any, Any, Any, Any], __: BaseRouteHandler) -> None:
        if not actor().may(scope):
            raise ForbiddenError(f"this needs a token with the scope {scope}")

    return check
