"""URLs of brokers that cotrail works with."""

from pydantic import SecretStr
from pydantic_core import PydanticCustomError

SCHEMES = ("redis", "rediss", "redis+socket")

_REDIS = "redis://:password@host:6379/0, rediss:// for TLS, or redis+socket:///path"

HINTS = {
    "sentinel": "Redis Sentinel isn't supported; give the address of the master, or of a proxy that follows it",
    "cluster": "a Redis cluster isn't supported; give the address of a single server",
    "valkey": "Valkey speaks Redis's protocol: write redis://",
    "valkeys": "Valkey speaks Redis's protocol: write rediss://",
    "unix": "write redis+socket:///path for a socket",
    "socket": "write redis+socket:///path for a socket",
}


def check_broker(url: SecretStr) -> SecretStr:
    """Refuse URLs of other brokers than Redis and Valkey, naming the reason; semicolons separate several URLs."""
    for each in url.get_secret_value().split(";"):
        scheme = each.partition("://")[0] if "://" in each else ""
        if scheme not in SCHEMES:
            raise PydanticCustomError("broker", "{reason}", {"reason": _reason(scheme)})
    return url


def _reason(scheme: str) -> str:
    """Return why a scheme is refused. It isn't quoted: in a URL without one, a password may stand in its place."""
    hints = [HINTS[part] for part in reversed(scheme.split("+")) if part in HINTS]
    return hints[0] if hints else f"the broker must be Redis or Valkey: {_REDIS}"
