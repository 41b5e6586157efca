"""Addresses of servers: parsed once and strictly, shown without the secrets in them.

Libraries disagree about which characters of a password must be percent-encoded. One that splits the password in the
wrong place takes the rest for a host, a port or a path and quotes it in its errors. So every address is parsed here
first, by RFC 3986, and an ambiguous one is refused.
"""

import re
from collections.abc import Collection
from urllib.parse import parse_qsl, unquote

from msgspec import Struct

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
