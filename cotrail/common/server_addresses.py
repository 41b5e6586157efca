"""Addresses of servers: parsed once and strictly, shown without the secrets in them.

Libraries disagree about which characters of a password must be percent-encoded. One that splits the password in the
wrong place takes the rest for a host, a port or a path and quotes it in its errors. So every address is parsed here
first, by RFC 3986, and an ambiguous one is refused.
"""

import os
import re
import ssl
from collections.abc import Collection, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qsl, unquote

from msgspec import Struct

from cotrail.errors import InputError

_PLAIN = r"A-Za-z0-9._~!$&'()*+,;="
_ENCODED = "%[0-9A-Fa-f]{2}"
_ADDRESS = re.compile(
    r"\A(?P<scheme>[a-z][a-z0-9+]*)://"
    rf"(?:(?P<user>(?:[{_PLAIN}-]|{_ENCODED})*)(?::(?P<password>(?:[{_PLAIN}:-]|{_ENCODED})*))?@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*)"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>(?:/[^?#@\s\x00-\x1f\x7f]*)?)"
    r"(?:\?(?P<query>[^#@\s\x00-\x1f\x7f]*))?"
)
_SHOWABLE = re.compile(
    r"\A(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)?(?P<hidden>.*@)?(?P<host>\[[0-9A-Fa-f:.]*\]?|[A-Za-z0-9._-]*)"
    r"(?P<port>:[0-9]+(?![^/]))?(?P<path>/[A-Za-z0-9._/-]*)?",
    re.DOTALL,
)
_MAX_PORT = 65_535
_SECRET = re.compile("pass|secret|token|key", re.IGNORECASE)
"""Query parameters with such names hold secrets."""


class Address(Struct, frozen=True, kw_only=True):
    """Location of a server and the credentials for it; user and password are decoded.

    host: empty for a server behind a Unix socket.
    """

    scheme: str
    user: str | None
    password: str | None
    host: str
    port: int | None
    path: str
    query: str

    def __str__(self) -> str:
        """The address without user, password and query."""
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}{self.path}"

    __repr__ = __str__

    @property
    def secrets(self) -> tuple[str, ...]:
        """Everything in the address that must never be shown."""
        entry = (self.password, f"{self.user or ''}:{self.password}") if self.password else ()
        given = parse_qsl(self.query, keep_blank_values=True)
        return (*entry, *(value for name, value in given if _SECRET.search(name)))


def read_address(text: str, schemes: Collection[str] = ()) -> Address:
    """Parse a URL, which must have one of the schemes where they are given.

    Raises ValueError, whose message quotes nothing of the URL.
    """
    scheme, separator, rest = text.partition("://")
    if schemes and (scheme not in schemes or not separator):
        raise ValueError(f"it must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise ValueError(_flaw(rest))
    port = None if match["port"] is None else int(match["port"])
    if port is not None and not 0 < port <= _MAX_PORT:
        raise ValueError("its port is out of range")
    if not match["host"] and port is not None:
        raise ValueError("it names no host")
    return Address(
        scheme=match["scheme"],
        user=_decoded(match["user"]),
        password=_decoded(match["password"]),
        host=match["host"],
        port=port,
        path=match["path"],
        query=match["query"] or "",
    )


def shown_address(text: str) -> str:
    """As much of a text that may be no address as can't hold a secret; empty where that is nothing.

    Everything before the last @ is hidden, and whatever follows a part that isn't understood.
    """
    match = _SHOWABLE.match(text)
    if match is None or not (match["scheme"] or match["hidden"]):
        return ""
    credentials = "[secret]@" if match["hidden"] else ""
    place = f"{match['host']}{match['port'] or ''}{match['path'] or ''}"
    return f"{match['scheme'] or ''}{credentials}{place}{'...' if match.end() < len(text) else ''}"


def _flaw(rest: str) -> str:
    """What is wrong with an address, behind its scheme; where it has a password, that is most likely the culprit."""
    host = rest.partition("/")[0].partition("?")[0]
    if "@" not in rest:
        if any(character.isspace() for character in rest):
            return "it holds a space or a line break; an address has none"
        if not host.isascii():
            return "its host has letters beyond ASCII; an international name is written as xn--..."
        if host.count(":") > 1 or "[" in host:
            return "its host isn't understood; an IPv6 address is written in brackets, as [::1]:5432"
        if ":" in host:
            return "its port is no number from 1 to 65535"
    return (
        "it isn't an address like scheme://user:password@host:port; in a password all but letters, digits and -._~ "
        "is written as % and two digits, as %2F for / and %40 for @"
    )


def _decoded(part: str | None) -> str | None:
    return None if part is None else unquote(part)


# What all HTTP clients here have in common: the authorities that they trust, and the proxies that they go through.

AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
PROXIES = tuple(each for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY") for each in (name, name.lower()))

SOCKS = ("socks5", "socks5h")

LOOPBACK: Mapping[str, None] = {f"all://{host}": None for host in ("localhost", "127.0.0.1", "[::1]")}
"""No proxy leads to this machine itself, whatever NO_PROXY says."""


def http_options() -> dict[str, Any]:
    """Return the arguments with which each HTTP client is made.

    Raises InputError, which names the variable, where the authorities can't be read or a proxy can't be used.
    """
    _check_proxies(*(os.environ.get(name, "").strip() for name in PROXIES))
    return {"verify": trusted_authorities(), "mounts": dict(LOOPBACK)}


def trusted_authorities() -> ssl.SSLContext:
    """Return those of the machine, or those that SSL_CERT_FILE or SSL_CERT_DIR name.

    They are read once in a process: reading them takes longer than most requests.
    Raises InputError, which names the variable, where they can't be read.
    """
    return _read(*(os.environ.get(name, "") for name in AUTHORITIES))


@cache
def _check_proxies(*addresses: str) -> None:
    import httpx2

    for name, address in zip(PROXIES, addresses, strict=True):
        if not address:
            continue
        try:
            scheme = httpx2.Proxy(address if "://" in address else f"http://{address}").url.scheme
        except (ValueError, httpx2.InvalidURL) as error:
            raise InputError(f"the environment variable {name} names no proxy ({error}); correct or unset it") from None
        if scheme in SOCKS and find_spec("socksio") is None:
            raise InputError(
                f"the environment variable {name} names a SOCKS proxy, which needs the package socksio: "
                "`pip install socksio`, or unset the variable"
            )


@cache
def _read(*places: str) -> ssl.SSLContext:
    import httpx2

    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        named = " and ".join(f"{name}={place}" for name, place in zip(AUTHORITIES, places, strict=True) if place)
        raise InputError(
            f"the certificate authorities of {named or 'this machine'} can't be read ({error}): correct or unset it"
        ) from error
