"""Middleware: who asks, under which id, in the name of which project."""

import uuid

from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from cotrail.services.access.actor import LOCAL, acting


class Access(ASGIMiddleware):
    """Finds out who asks, before anything else is done."""

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Have the request be answered in that one's name."""
        scope["state"]["request_id"] = str(uuid.uuid4())
        with acting(LOCAL):
            await next_app(scope, receive, send)
