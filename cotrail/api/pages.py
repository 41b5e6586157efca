"""Routes of the viewer's pages and actions, their requests, the files that pages refer to, and signing in."""

from collections.abc import Mapping
from http import HTTPStatus
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote

from litestar import HttpMethod, Response, get, post, route
from litestar.concurrency import sync_to_thread
from litestar.datastructures import Cookie
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from cotrail.api import origins
from cotrail.api.access import PUBLIC, SESSION, cookie_name, scope_guard
from cotrail.api.origins import AnyRequest
from cotrail.api.requests import beside_type, fields_of, from_path, is_list, record_fields, typed, used
from cotrail.common.printable_text import storable
from cotrail.errors import ForbiddenError, InputError, UnauthenticatedError, UnknownNameError
from cotrail.services.access import tokens
from cotrail.services.access.sign_in import FLOW_SECONDS, SignIn, check_path
from cotrail.services.actor import Scope, actor
from cotrail.services.operations.operation import Operation, Route, through
from cotrail.viewer.page import PAGES as _PAGES
from cotrail.viewer.page import GoTo, Page, Shown, placed
from cotrail.viewer.rendering import Here, render, static

MODULES = ("ask", "comparisons", "corpora", "experiments", "questions", "run", "workers")
"""The modules of `cotrail.viewer.pages`."""

for _module in MODULES:
    import_module(f"cotrail.viewer.pages.{_module}")

PAGES: Mapping[str, Page[..., Any]] = _PAGES


# What requests for pages ask for: the arguments of a page, from its path and its query, or of an action, from a form.

MOST_FIELDS = 1000


def wants_page(request: AnyRequest) -> bool:
    """Whether it comes from a browser that shows what is answered, rather than from a program."""
    path: str = request.scope["path"]
    return "text/html" in request.headers.get("Accept", "") and path != "/v1" and not path.startswith("/v1/")


def pairs_of(text: bytes) -> dict[str, list[str]]:
    """The values by name of a query or a form; raises InputError where they can't be read."""
    try:
        pairs = parse_qs(text.decode(), errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise InputError(f"the address or the form can't be read ({error}); go back and try again") from error
    if b"%00" in text or b"\0" in text:
        raise InputError("the address or the form holds a NUL character, which can't be stored; take it out")
    return {name: [storable(each) for each in values] for name, values in pairs.items()}


def page_arguments(page: Route[..., Any], path: Mapping[str, str], pairs: Mapping[str, list[str]]) -> dict[str, Any]:
    """The arguments that these give; raises InputError where they can't be used."""
    record = beside_type(page)
    values = {
        field.name: pairs[field.name] if is_list(field) else typed(pairs[field.name][-1], field.type)
        for field in record_fields(record)
        if field.name in pairs
    }
    value = used(record, values)
    return from_path(page, path) | ({page.whole_body: value} if page.whole_body else fields_of(value))


R = TypeVar("R")

VIEWER = "viewer"
"""How the names of pages and actions begin where it is recorded who did what."""

HEADERS = {
    "Cache-Control": "private, no-cache",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
}
"""What pages are sent with: nothing in them runs but the viewer's own file."""

_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class _Allowed:
    """The transport by which pages call operations: those that the viewer may carry out, in this process."""

    url = None

    def carry_out(self, operation: Operation[Any, R], arguments: Mapping[str, Any]) -> R:
        if not actor().may(operation.scope):
            raise ForbiddenError(f"this needs a token with the scope {operation.scope}")
        return operation.function(**arguments)


def page_handlers() -> list[HTTPRouteHandler]:
    """A handler for each page and each action, and that of their files."""
    return [*map(_handler, PAGES.values()), static_file]


@get("/static/{name:str}", opt={PUBLIC: True}, include_in_schema=False, sync_to_thread=False)
def static_file(name: FromPath[str]) -> Response[bytes]:
    """A style sheet or a script; its address names its version."""
    try:
        content = static(name)
    except KeyError as error:
        raise UnknownNameError(f"there is no file {name!r}") from error
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers=headers)


def page_response(shown: Shown, here: Here, status: int = 200) -> Response[str]:
    """A page as it is sent."""
    return Response(render(shown, here), status_code=status, media_type="text/html", headers=HEADERS)


def here_of(request: AnyRequest) -> Here:
    """Where a request is, and who looks."""
    who = tokens.who_am_i() if actor().may(Scope.READ) else None
    return Here(path=placed(quote(request.scope["path"])), query=pairs_of(request.scope["query_string"]), who=who)


def _handler(page: Page[..., Any]) -> HTTPRouteHandler:
    async def answer(request: AnyRequest) -> Response[Any]:
        sent = await request.body() if page.takes_body else request.scope["query_string"]
        arguments = page_arguments(page, request.path_params, pairs_of(sent))
        return await sync_to_thread(_answered, page, arguments, request)

    return route(
        page.path.replace("}", ":str}"),
        http_method=HttpMethod(page.method),
        status_code=200,
        guards=[scope_guard(page.scope)],
        opt={"operation": f"{VIEWER}.{page.name}", "scope": page.scope},
        include_in_schema=False,
    )(answer)


def _answered(page: Page[..., Any], arguments: Mapping[str, Any], request: AnyRequest) -> Response[Any]:
    with through(_Allowed()):
        answer: Shown | GoTo = page(**arguments)
        if isinstance(answer, GoTo):
            return Response(None, status_code=303, headers={"Location": answer.address})
        return page_response(answer, here_of(request))


# Signing in and out with a browser.

STATE = "sign_in"
"""The key of the application's state under which it is how people sign in, if they can."""

CALLBACK = "/auth/callback"

TOKEN_SECONDS = 30 * 86_400
"""How long a browser keeps a token; one that expires before is refused before."""

FLOW = "cotrail_sign_in"
"""The cookie of a sign-in under way; `__Host-` precedes it except on the machine itself."""


@get("/auth/sign-in", opt={PUBLIC: True}, include_in_schema=False)
async def sign_in(request: AnyRequest) -> Response[None]:
    """Send the browser to the provider; `next` is where it goes afterwards."""
    redirect = f"{origins.own_address(request)}{placed(CALLBACK)}"
    begun = await _configured(request).begin(redirect, request.query_params.get("next", placed("/")))
    return _goes_to(begun.address, _cookie(request, FLOW, begun.sealed, FLOW_SECONDS))


@get(CALLBACK, opt={PUBLIC: True}, include_in_schema=False)
async def callback(request: AnyRequest) -> Response[None]:
    """Sign in the person whom the provider sends back."""
    given, sealed = request.query_params, request.cookies.get(cookie_name(request, FLOW), "")
    session = await _configured(request).complete(sealed, given.get("state", ""), given.get("code", ""))
    kept = _cookie(request, SESSION, session.secret, session.seconds)
    return _goes_to(session.path, kept, _cookie(request, FLOW, "", 0))


@post("/auth/sign-out", status_code=204, opt={PUBLIC: True}, include_in_schema=False)
async def sign_out(request: AnyRequest) -> Response[None]:
    """End the session of the browser."""
    who = actor()
    if who.person and who.token is not None:
        await sync_to_thread(tokens.end_session, who.token)
    # Without it, it may be a page of another site that asks: browsers send it none.
    has_cookie = cookie_name(request, SESSION) in request.cookies
    ended = [_cookie(request, SESSION, "", 0)] if has_cookie else []
    return _goes_to(placed("/"), *ended) if wants_page(request) else Response(None, status_code=204, cookies=ended)


def _configured(request: AnyRequest) -> SignIn:
    how: SignIn | None = request.app.state[STATE]
    if how is None:
        raise UnknownNameError("people don't sign in to this service: its service.toml has no table [sign_in]")
    return how


def _goes_to(address: str, *cookies: Cookie) -> Response[None]:
    return Response(None, status_code=303, headers={"Location": address}, cookies=cookies)


def _cookie(request: AnyRequest, name: str, value: str, seconds: int) -> Cookie:
    """A cookie that scripts don't see, and that other sites' pages send only where a person follows a link."""
    return Cookie(
        key=cookie_name(request, name),
        value=value,
        max_age=seconds,
        secure=not origins.is_local(request),
        httponly=True,
        samesite="lax",
    )


@post("/auth/token", status_code=303, opt={PUBLIC: True}, include_in_schema=False)
async def by_token(request: AnyRequest) -> Response[Any]:
    """Sign in a holder of a token, which the browser keeps from then on; `next` is where it goes."""
    origins.check_page(request, cookie=True)
    given = pairs_of(await request.body())
    secret, path = given.get("token", [""])[-1].strip(), given.get("next", [placed("/")])[-1]
    check_path(path)
    try:
        await sync_to_thread(tokens.recognized, secret)
    except UnauthenticatedError as error:
        if not wants_page(request):
            raise
        return sign_in_page(request, path, str(error))
    return _goes_to(path, _cookie(request, SESSION, secret, TOKEN_SECONDS))


def sign_in_page(request: AnyRequest, path: str, refused: str = "") -> Response[str]:
    """The page on which people sign in; path: where they go then; refused: why they aren't signed in yet."""
    values = {"next": path, "refused": refused, "by_provider": request.app.state[STATE] is not None}
    shown = Shown(template="sign-in.html", values=values)
    return page_response(shown, here_of(request), HTTPStatus.UNAUTHORIZED)


SIGN_IN = (sign_in, callback, sign_out, by_token)
