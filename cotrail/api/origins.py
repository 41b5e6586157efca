"""Where a request comes from: from this machine itself, and from which site's page a browser sends it.

Which account of this machine opened a connection over loopback: the kernel knows, and answers by its `sock_diag`.

Loopback is open to every account, where the sockets of PostgreSQL and Redis lie in a closed folder; what the owner of
the server may do without a token, nobody else may (`man 7 sock_diag`).
"""

import os
import socket
import struct
import sys
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any
from urllib.parse import urlsplit

from litestar import Request

from cotrail.configuration.settings import settings
from cotrail.errors import ForbiddenError

Address = tuple[str, int]
"""A host's address in digits, and a port."""

_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1
"""`NETLINK_SOCK_DIAG`, `SOCK_DIAG_BY_FAMILY` and `NLM_F_REQUEST` of Linux's headers."""

_HEADER = struct.Struct("=IHHII")
"""`nlmsghdr`: length, type, flags, sequence, port."""

_ASKED = struct.Struct("=BBBxI2s2s16s16sI8s")
"""`inet_diag_req_v2`: family, protocol, what else is wanted, states, ports, addresses, interface, cookie."""

_TOLD = struct.Struct("=4x48x4x4x4xII")
"""`inet_diag_msg`: of it the account and the inode."""

_ANY_STATE, _NO_COOKIE = 0xFFFFFFFF, b"\xff" * 8
_PATIENCE_SECONDS = 1.0


def is_owners(peer: Address, here: Address) -> bool:
    """Whether the account of this process, or root, opened the connection from `peer` to `here`.

    True where the system isn't Linux and can't be asked; False where the kernel doesn't say, as of a connection whose
    other end is closed already.
    """
    if sys.platform != "linux":
        return True
    return owner(peer, here) in (0, os.geteuid())


def owner(peer: Address, here: Address) -> int | None:
    """The account that has the socket at `peer` of the connection to `here`; None where the kernel doesn't say.

    Costs some 30 µs: exactly one socket is asked for, and no list of them.
    """
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as netlink:
            netlink.settimeout(_PATIENCE_SECONDS)
            netlink.sendto(_question(ip_address(peer[0]), ip_address(here[0]), peer[1], here[1]), (0, 0))
            return _account(netlink.recv(4096))
    except (OSError, ValueError):
        return None


def _question(peer: IPv4Address | IPv6Address, here: IPv4Address | IPv6Address, port: int, own: int) -> bytes:
    family = socket.AF_INET if peer.version == 4 else socket.AF_INET6
    ports = struct.pack("!HH", port, own)
    ends = (ports[:2], ports[2:], peer.packed.ljust(16, b"\0"), here.packed.ljust(16, b"\0"))
    asked = _ASKED.pack(family, socket.IPPROTO_TCP, 0, _ANY_STATE, *ends, 0, _NO_COOKIE)
    return _HEADER.pack(_HEADER.size + len(asked), _BY_FAMILY, _REQUEST, 0, 0) + asked


def _account(answer: bytes) -> int | None:
    if _HEADER.unpack_from(answer)[1] != _BY_FAMILY or len(answer) < _HEADER.size + _TOLD.size:
        return None  # an error, as where there is no such connection
    uid, inode = _TOLD.unpack_from(answer, _HEADER.size)
    # A socket that its program closed belongs to nobody, and the kernel then names account 0.
    return uid if inode else None


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


def is_open(request: AnyRequest) -> bool:
    """Whether it needs no token: it is local, and of the account that the service has."""
    if settings().tokens_required or not is_local(request) or request.client is None:
        return False
    host, port = request.scope["server"] or ("", None)
    return port is not None and is_owners((request.client.host, request.client.port), (host, port))


def check_page(request: AnyRequest, *, cookie: bool) -> None:
    """Raise ForbiddenError where a browser sends it for a page of another site.

    cookie: whether a cookie says who asks, which browsers send by themselves: then what changes anything has to say
    that it comes from a page of the service, under one of its own names.
    """
    site, origin, is_safe = (
        request.headers.get("Sec-Fetch-Site"),
        request.headers.get("Origin"),
        request.method in _SAFE,
    )
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
