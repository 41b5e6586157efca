"""What all HTTP clients here have in common: the authorities that they trust, and the proxies that they go through."""

import os
import ssl
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

from cotrail.errors import InputError

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
