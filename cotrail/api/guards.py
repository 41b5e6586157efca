"""Guards of routes: whether the one who asks may."""

from typing import Any

from anyio import to_thread
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard

from cotrail.api.activities import activities_of
from cotrail.errors import ForbiddenError
from cotrail.services.access.projects import began
from cotrail.services.actor import Scope, actor
from cotrail.services.operations.registry import OPERATIONS

RESPOND = "openai.respond"
"""The operation of OpenAI's API that makes what may be cancelled."""

RESPONSE = "resp_"
"""The beginning of the id of a response; the run's id follows."""

_Connection = ASGIConnection[Any, Any, Any, Any]


def needs(scope: Scope, *, own: bool = False) -> Guard:
    """A guard of routes that a token must allow this for; own: or `submit`, for what was begun with it."""

    async def check(connection: _Connection, _: BaseRouteHandler) -> None:
        if actor().may(scope) or (own and actor().may(Scope.SUBMIT) and await _began(connection)):
            return
        raise ForbiddenError(f"this needs a token with the scope {scope}")

    return check


async def _began(connection: _Connection) -> bool:
    """Whether the token of the one who asks began what the path names."""
    await activities_of(connection.app).settle()
    [named] = connection.path_params.values()
    makers = [name for name, each in OPERATIONS.items() if each.keyed]
    return await to_thread.run_sync(began, str(named).removeprefix(RESPONSE), [*makers, RESPOND])
