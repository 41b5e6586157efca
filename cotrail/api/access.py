"""Middleware: who asks, under which id, in the name of which project; guards, by the scopes of operations.

A request says so by a token (`Authorization: Bearer`), or by the cookie of a person who signed in. The account that
runs the server needs none on the machine itself, where only that reaches it, and no proxy is between the two
(`cotrail.api.origins`). Whatever isn't marked as public is refused to those of whom nothing is known.

Limits of how often may be asked with one token, in each process of the service; and the recording of who asked to
change what: after the answer, so that nobody waits for it.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any

from anyio import to_thread
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from litestar import Litestar, Request
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Guard, Message, Receive, Send
from litestar.types import Scope as Connection
from msgspec.structs import replace

from cotrail.api import origins
from cotrail.api.origins import AnyRequest
from cotrail.api.problems import ACTOR, id_of, request_id
from cotrail.common.printable_text import storable
from cotrail.configuration.settings import settings
from cotrail.errors import CotrailError, ForbiddenError, TooManyRequestsError, UnauthenticatedError, UnavailableError
from cotrail.services.access import projects, tokens
from cotrail.services.access.projects import Activity, began, record
from cotrail.services.actor import ANYBODY, LOCAL, Actor, Scope, acting, actor
from cotrail.services.operations.all_operations import OPERATIONS

logger = logging.getLogger(__name__)


class Rates:
    """Counts the requests of each token."""

    def __init__(self) -> None:
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    def count(self, token: str) -> None:
        """Count a request with a token; raises TooManyRequestsError where it is one too many."""
        most = RateLimitItemPerMinute(settings().requests_per_minute)
        if not self._limiter.hit(most, token):
            seconds = max(1.0, self._limiter.get_window_stats(most, token).reset_time - time.time())
            raise TooManyRequestsError(
                f"more than {most.amount:,} requests in a minute came with this token; try again in {seconds:.0f} s",
                seconds,
            )


SAFE = ("GET", "HEAD", "OPTIONS")

LONGEST_SUBJECT = 200

PUBLIC = "public"
"""The key of a route's `opt` that opens it to those without a token."""

ANY_KEY = "any_key"
"""The key of the `opt` of OpenAI's routes, whose clients always send some key: where no token is needed, one that
isn't in the form of a token is as good as none. Everywhere else a credential that isn't valid is refused, since a
client that sends one means to have its rights, and not those of the account that runs the server."""

PROJECT = "Cotrail-Project"
"""The header by which the account that runs the server chooses a project."""

SESSION = "cotrail_session"
"""The cookie of a person who signed in; `__Host-` precedes it except on the machine itself."""

idempotency_key: ContextVar[str | None] = ContextVar("idempotency_key", default=None)
"""Its `Idempotency-Key`."""

AGAIN_SECONDS = 5.0
"""When it is tried again, where the store doesn't answer."""

MOST_WAITING = 10_000
"""The largest number of activities that wait for the store; further ones are only logged."""

ACTIVITIES = "activities"
"""The key of an application's state under which they are."""

made: ContextVar[list[str]] = ContextVar("made")
"""The ids of what the request that is being answered makes."""


class Activities:
    """The activities that aren't stored yet."""

    def __init__(self) -> None:
        self._waiting: list[Activity] = []
        self._noted, self._ends = asyncio.Event(), asyncio.Event()
        self._turn = asyncio.Lock()

    def note(self, activity: Activity) -> None:
        """Store an activity soon."""
        if len(self._waiting) >= MOST_WAITING:
            logger.error("an activity isn't recorded, as the store doesn't answer: %s", activity)
            return
        self._waiting.append(activity)
        self._noted.set()

    @asynccontextmanager
    async def kept(self, app: Litestar) -> AsyncIterator[None]:
        """Have activities be stored while the service is there, the last ones as it ends."""
        app.state[ACTIVITIES] = self
        keeping = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            self._ends.set()
            self._noted.set()
            await keeping
            await self._store()

    async def _keep(self) -> None:
        while not self._ends.is_set():
            await self._noted.wait()
            self._noted.clear()
            if not await self._store():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ends.wait(), AGAIN_SECONDS)
                self._noted.set()

    async def settle(self) -> None:
        """Have all that was noted by now be stored, for who looks for it there."""
        await self._store()

    async def _store(self) -> bool:
        """Store what waits, behind what is being stored; returns whether the store answered."""
        async with self._turn:
            return await self._store_rows()

    async def _store_rows(self) -> bool:
        rows, self._waiting = self._waiting, []
        try:
            if rows:
                await asyncio.to_thread(record, rows)
        except UnavailableError as error:
            logger.warning("%d activities wait for the store: %s", len(rows), error)
            self._waiting = [*rows, *self._waiting]
            return False
        except CotrailError:
            logger.exception("activities can't be recorded: %s", rows)
        return True


def note_made(answer: Any) -> None:
    """Note the id of what an answer tells was made: a run, the first of several, a job, a token or a project."""
    runs = getattr(answer, "runs", None)
    of = runs[0] if isinstance(runs, tuple) and runs else answer
    ids = (getattr(of, name, None) for name in ("run", "job", "id", "name"))
    made.get([]).extend(each for each in ids if isinstance(each, str))


class Access(ASGIMiddleware):
    """Finds out who asks, before anything else is done."""

    def __init__(self, activities: Activities) -> None:
        self._rates = Rates()
        self._activities = activities

    async def handle(self, scope: Connection, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Have the request be answered in that one's name."""
        request: AnyRequest = Request(scope)
        request_id.set(id_of(scope))
        idempotency_key.set(request.headers.get("Idempotency-Key"))
        who = request.state[ACTOR] = await _actor(request)
        if who.token is not None:
            self._rates.count(who.token)
        if not who.scopes and not request.route_handler.opt.get(PUBLIC):
            raise UnauthenticatedError(
                "this needs a token, in the header `Authorization: Bearer`; on the machine itself only the account "
                "that runs the service needs none"
            )
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
    is_open = origins.is_open(request)
    header = request.headers.get("Authorization")
    if header is not None and not (is_open and request.route_handler.opt.get(ANY_KEY) and _is_made_up(header)):
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
    """Whether what it has for a token isn't in the form of one."""
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


RESPOND = "openai.respond"
"""The operation of OpenAI's API that makes what may be cancelled."""

RESPONSE = "resp_"
"""The beginning of the id of a response; the run's id follows."""

_Connection = ASGIConnection[Any, Any, Any, Any]


def scope_guard(scope: Scope, *, own: bool = False) -> Guard:
    """A guard of routes that a token must allow this for; own: or `submit`, for what was begun with it."""

    async def check(connection: _Connection, _: BaseRouteHandler) -> None:
        if actor().may(scope) or (own and actor().may(Scope.SUBMIT) and await _began(connection)):
            return
        raise ForbiddenError(f"this needs a token with the scope {scope}")

    return check


async def _began(connection: _Connection) -> bool:
    """Whether the token of the one who asks began what the path names."""
    activities: Activities = connection.app.state[ACTIVITIES]
    await activities.settle()
    [named] = connection.path_params.values()
    makers = [name for name, each in OPERATIONS.items() if each.keyed]
    return await to_thread.run_sync(began, str(named).removeprefix(RESPONSE), [*makers, RESPOND])
