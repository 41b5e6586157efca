"""Where a request comes from: from this machine itself, and from which site's page a browser sends it."""

from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from litestar import Request

from cotrail.configuration.settings import settings
from cotrail.errors import ForbiddenError

AnyRequest = Request[Any, Any, Any]

FORWARDED = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP")
"""What proxies add: who asks is then not who connects."""

_SAFE = ("GET", "HEAD")
_OWN_SITES = ("same-origin", "none")
"""Of `Sec-Fetch-Site`: the service's own pages, and what a person typed."""


def is_local(request: AnyRequest) -> bool:
    """Whether it comes from this machine, by a name of it, to a server that only this machine reaches."""
    peer = request.client.host if request.client else ""
    names = (settings().api_host, peer, hostname(request.headers.get("Host", "")))
    return all(map(_is_loopback, names)) and not any(name in request.headers for name in FORWARDED)


def check_page(request: AnyRequest, *, cookie: bool) -> None:
    """Raise ForbiddenError where a browser sends it for a page of another site.

    cookie: whether a cookie says who asks, which browsers send by themselves: then what changes anything has to say
    that it comes from a page of the service, under one of its own names.
    """
    site, origin, is_safe = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin"), _is_safe(request)
    if site not in (None, *_OWN_SITES) and not (is_safe and _is_navigation(request)):
        raise ForbiddenError("a page of another site asks, and may not")
    if origin is not None and urlsplit(origin).netloc.casefold() != _host(request):
        raise ForbiddenError("a page of another origin asks, and may not")
    if not cookie:
        return
    if not (_is_loopback(hostname(_host(request))) or _host(request) in _public_hosts()):
        raise _unknown_host()
    if not is_safe and origin is None and site != "same-origin":
        raise ForbiddenError("what changes anything has to come from the service's own pages; programs take a token")


def own_address(request: AnyRequest) -> str:
    """The service's address as browsers know it; raises ForbiddenError where it hasn't the name that is asked for."""
    host = _host(request)
    if is_local(request):
        return f"http://{host}"
    if host in _public_hosts():
        return f"https://{host}"
    raise _unknown_host()


def hostname(host: str) -> str:
    """The name in a `Host`, without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _host(request: AnyRequest) -> str:
    return request.headers.get("Host", "").casefold()


def _public_hosts() -> set[str]:
    return {name.strip().casefold() for name in settings().public_hosts.split(",")} - {""}


def _unknown_host() -> ForbiddenError:
    return ForbiddenError("the service has no such host name; its administrator sets COTRAIL_PUBLIC_HOSTS")


def _is_safe(request: AnyRequest) -> bool:
    return request.method in _SAFE


def _is_navigation(request: AnyRequest) -> bool:
    """Whether a person follows a link, and the page that has the link can't read the answer."""
    return request.headers.get("Sec-Fetch-Mode") == "navigate" and request.headers.get("Sec-Fetch-Dest") == "document"


def _is_loopback(name: str) -> bool:
    if name.casefold() == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
