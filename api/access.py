"""Middleware: who asks, under which id, in the name of which project.

A request says so by a token (`Authorization: Bearer`), or by the cookie of a person who signed in. On the machine
itself none is needed, where only that reaches the server, and no proxy is between the two (`cotrail.api.origins`).
Whatever isn't marked as public is refused to those of whom nothing is known.
"""

from contextvars import ContextVar
from http import HTTPStatus
from typing import Any

from anyio import to_thread
from litestar import Request
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from msgspec.structs import replace

from cotrail.api import origins
from cotrail.api.activities import Activities, made
from cotrail.api.rates import Rates
from cotrail.api.request_ids import id_of, request_id
from cotrail.common.storable_text import storable
from cotrail.configuration.settings import settings
from cotrail.errors import UnauthenticatedError
from cotrail.services.access import projects, tokens
from cotrail.services.access.activities import Activity
from cotrail.services.access.actor import ANYBODY, LOCAL, Actor, acting

AnyRequest = Request[Any, Any, Any]

SAFE = ("GET", "HEAD", "OPTIONS")

LONGEST_SUBJECT = 200

PUBLIC = "public"
"""The key of a route's `opt` that opens it to those without a token."""

PROJECT = "Cotrail-Project"
"""The header by which whoever is at the machine itself chooses a project."""

SESSION = "cotrail_session"
"""The cookie of a person who signed in; `__Host-` precedes it except on the machine itself."""

ACTOR = "actor"
"""The key of a request's state under which it is who asks, once that is known."""

idempotency_key: ContextVar[str | None] = ContextVar("idempotency_key", default=None)
"""Its `Idempotency-Key`."""


class Access(ASGIMiddleware):
    """Finds out who asks, before anything else is done."""

    def __init__(self, activities: Activities) -> None:
        self._rates = Rates()
        self._activities = activities

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Have the request be answered in that one's name."""
        request: AnyRequest = Request(scope)
        request_id.set(id_of(scope))
        idempotency_key.set(request.headers.get("Idempotency-Key"))
        who = request.state[ACTOR] = await _actor(request)
        if who.token is not None:
            self._rates.count(who.token)
        if not who.scopes and not request.route_handler.opt.get(PUBLIC):
            raise UnauthenticatedError("this needs a token, in the header `Authorization: Bearer`")
        if request.method in SAFE:
            with acting(who):
                await next_app(scope, receive, send)
        else:
            await self._note(request, who, receive, send, next_app)

    async def _note(self, request: AnyRequest, who: Actor, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Have a request that is to change something be answered, and note what came of it."""
        statuses, ids = [HTTPStatus.INTERNAL_SERVER_ERROR], list[str]()

        async def send_noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(HTTPStatus(message["status"]))
            await send(message)

        made.set(ids)
        try:
            with acting(who):
                await next_app(request.scope, receive, send_noting)
        finally:
            subject = next(iter((*request.path_params.values(), *ids)), None)
            self._activities.note(
                Activity(
                    who=who,
                    operation=request.route_handler.opt.get("operation", request.scope["path_template"]),
                    subject=None if subject is None else storable(str(subject))[:LONGEST_SUBJECT],
                    status=statuses[-1],
                    request_id=id_of(request.scope),
                )
            )


def cookie_name(request: AnyRequest, name: str) -> str:
    """The name of a cookie of the service, which binds it to this host except on the machine itself."""
    return name if origins.is_local(request) else f"__Host-{name}"


async def _actor(request: AnyRequest) -> Actor:
    """The one who asks; raises UnauthenticatedError, and ForbiddenError for pages of other sites."""
    is_open = origins.is_local(request) and not settings().tokens_required
    header = request.headers.get("Authorization")
    if header is not None and not (is_open and _is_made_up(header)):
        scheme, _, secret = header.partition(" ")
        if scheme.casefold() != "bearer":
            raise UnauthenticatedError("a token stands behind `Authorization: Bearer`")
        return await _of_project(request, await _recognized(secret.strip()))
    if secret := request.cookies.get(cookie_name(request, SESSION), ""):
        origins.check_page(request, cookie=True)
        try:
            return await _recognized(secret)
        except UnauthenticatedError:
            return ANYBODY
    if not is_open:
        return ANYBODY
    origins.check_page(request, cookie=False)
    return await _of_project(request, LOCAL)


def _is_made_up(header: str) -> bool:
    """Whether it isn't in the form of a token: clients of OpenAI's API send some key where none is needed."""
    scheme, _, secret = header.partition(" ")
    return scheme.casefold() == "bearer" and not secret.strip().startswith(f"{tokens.PREFIX}_")


async def _recognized(secret: str) -> Actor:
    known = tokens.remembered(secret)
    return known if known is not None else await to_thread.run_sync(tokens.recognized, secret)


async def _of_project(request: AnyRequest, who: Actor) -> Actor:
    """The same one, in the name of the project that the request chooses."""
    chosen = request.headers.get(PROJECT)
    if chosen is None or chosen == who.project:
        return who
    with acting(who):
        return replace(who, project=await to_thread.run_sync(projects.choose, chosen))
