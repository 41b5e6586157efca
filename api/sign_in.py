"""Routes by which people sign in and out with a browser."""

from typing import Any

from litestar import Request, Response, get, post
from litestar.concurrency import sync_to_thread
from litestar.datastructures import Cookie

from cotrail.api import origins
from cotrail.api.access import PUBLIC, SESSION, cookie_name
from cotrail.errors import UnknownNameError
from cotrail.services.access import tokens
from cotrail.services.access.actor import actor
from cotrail.services.access.sign_in import FLOW_SECONDS, SignIn

AnyRequest = Request[Any, Any, Any]

STATE = "sign_in"
"""The key of the application's state under which it is how people sign in, if they can."""

CALLBACK = "/auth/callback"

FLOW = "cotrail_sign_in"
"""The cookie of a sign-in under way; `__Host-` precedes it except on the machine itself."""


@get("/auth/sign-in", opt={PUBLIC: True}, include_in_schema=False)
async def sign_in(request: AnyRequest) -> Response[None]:
    """Send the browser to the provider; `next` is where it goes afterwards."""
    redirect = f"{origins.own_address(request)}{CALLBACK}"
    begun = await _configured(request).begin(redirect, request.query_params.get("next", "/v1/whoami"))
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
    return Response(None, status_code=204, cookies=[_cookie(request, SESSION, "", 0)] if has_cookie else [])


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


SIGN_IN = (sign_in, callback, sign_out)
