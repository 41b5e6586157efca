"""Routes by which people sign in and out with a browser."""

from http import HTTPStatus
from typing import Any

from litestar import Response, get, post
from litestar.concurrency import sync_to_thread
from litestar.datastructures import Cookie

from cotrail.api import origins
from cotrail.api.access import PUBLIC, SESSION, cookie_name
from cotrail.api.origins import AnyRequest
from cotrail.api.pages import here_of, page_response, pairs_of, wants_page
from cotrail.errors import UnauthenticatedError, UnknownNameError
from cotrail.services.access import tokens
from cotrail.services.access.sign_in import FLOW_SECONDS, SignIn, check_path
from cotrail.services.actor import actor
from cotrail.viewer.page import Shown, placed

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
