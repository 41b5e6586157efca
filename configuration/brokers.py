"""Which URLs lead to a broker that cotrail works with."""

from pydantic import SecretStr
from pydantic_core import PydanticCustomError

SCHEMES = ("redis", "rediss", "redis+socket")

_REDIS = "redis://:password@host:6379/0, rediss:// for TLS, or redis+socket:///path"

HINTS = {
    "sentinel": "Redis Sentinel isn't supported; give the address of the master, or of a proxy that follows it",
    "cluster": "a Redis cluster isn't supported; give the address of a single server",
    "valkey": "Valkey speaks Redis's language: write redis://",
    "valkeys": "Valkey speaks Redis's language: write rediss://",
    "unix": "write redis+socket:///path for a socket",
    "socket": "write redis+socket:///path for a socket",
}


def check_broker(url: SecretStr) -> SecretStr:
    """Refuses what isn't Redis's or Valkey's, by name; several URLs have semicolons between them."""
    for each in url.get_secret_value().split(";"):
        scheme = each.partition("://")[0] if "://" in each else ""
        if scheme not in SCHEMES:
            raise PydanticCustomError("broker", "{reason}", {"reason": _reason(scheme)})
    return url


def _reason(scheme: str) -> str:
    """Why a scheme is refused; without one there may be a password in its place, which isn't quoted."""
    hints = [HINTS[part] for part in reversed(scheme.split("+")) if part in HINTS]
    return hints[0] if hints else f"the broker must be Redis or Valkey: {_REDIS}"
