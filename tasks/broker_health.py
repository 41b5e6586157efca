"""Health of the broker: whether Redis takes messages and keeps them, and what it says of itself."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kombu.connection import Connection
from msgspec import Struct
from redis import ResponseError

from cotrail.tasks.routing import BROKER_ERRORS

PATIENCE_SECONDS = 2.0
"""How long a broker may take to answer a health check."""

CHECK_KEY, CHECK_MILLISECONDS = "check", 1000
"""The key that a health check writes, and after how long it is gone."""

TOKEN_KEY = "store"  # noqa: S105 - it opens nothing
"""The key of the token by which processes of one database know its Redis (`cotrail.tasks.belonging`)."""

NO_EVICTION = "noeviction"
"""The only `maxmemory-policy` by which Redis keeps every message that it took."""


class BrokerFacts(Struct, frozen=True, kw_only=True):
    """What was learned; problem: why it takes no messages or loses them, None where it doesn't.

    version: None where it doesn't answer at all; persistent: whether it writes what it is given to its disk; token:
    that under `TOKEN_KEY`; drift: seconds by which its clock is ahead of this host's, None where it doesn't say.
    """

    problem: str | None
    version: str | None = None
    policy: str = "unknown"
    persistent: bool = True
    token: str | None = None
    drift: float | None = None


def impatient(url: str) -> Connection:
    """Return a connection to the broker that gives up within a few seconds where it doesn't answer."""
    patience = {"socket_timeout": PATIENCE_SECONDS, "socket_connect_timeout": PATIENCE_SECONDS}
    return Connection(url, transport_options=patience)


def client_of(connection: Connection) -> Any:
    """Return the client of Redis behind a connection; raises one of `BROKER_ERRORS` where it doesn't answer."""
    connection.ensure_connection(max_retries=1, interval_start=0)
    channel: Any = connection.default_channel
    return channel.client


def token_in(client: Any, prefix: str) -> str | None:
    """Return the token that Redis has; None where it has none."""
    value: bytes | None = client.get(f"{prefix}{TOKEN_KEY}")
    return None if value is None else value.decode(errors="replace")


def broker_problem(url: str, prefix: str) -> str | None:
    """Why the broker doesn't take messages and keep them; None where it does. Takes a few seconds at most.

    prefix: the beginning of every key of cotrail's.
    """
    try:
        with _asking(url) as client:
            return _problem(client, prefix)
    except BROKER_ERRORS as error:
        return str(error)


def policy_problem(url: str) -> str | None:
    """What may make the broker lose messages, though it does not now; None where nothing does, or it doesn't say."""
    try:
        with _asking(url) as client:
            policy = client.info("memory").get("maxmemory_policy", NO_EVICTION)
    except BROKER_ERRORS:
        return None
    return None if policy == NO_EVICTION else f"Redis may evict queues: {_remedy(policy)}"


def ask_broker(url: str, prefix: str) -> BrokerFacts:
    """Ask it for all of that; prefix: the beginning of cotrail's keys. Takes a few seconds at most."""
    problem = None
    try:
        with _asking(url) as client:
            problem, token = _problem(client, prefix), token_in(client, prefix)
            info, before = client.info(), time.time()
            seconds, microseconds = client.time()
    except BROKER_ERRORS as error:
        return BrokerFacts(problem=problem or str(error))
    return BrokerFacts(
        problem=problem,
        version=str(info["redis_version"]),
        policy=str(info.get("maxmemory_policy", "unknown")),
        persistent=bool(info.get("aof_enabled", 0)),
        token=token,
        drift=seconds + microseconds / 1e6 - (before + time.time()) / 2,
    )


@contextmanager
def _asking(url: str) -> Iterator[Any]:
    with impatient(url) as connection:
        yield client_of(connection)


def _problem(client: Any, prefix: str) -> str | None:
    try:
        # A full one, a replica, and one that can't write its file answer, and take nothing.
        client.set(f"{prefix}{CHECK_KEY}", "", px=CHECK_MILLISECONDS)
    except BROKER_ERRORS as error:
        return str(error)
    return _evicting(client)


def _evicting(client: Any) -> str | None:
    try:
        policy = client.info("memory").get("maxmemory_policy", NO_EVICTION)
        evicted = client.info("stats").get("evicted_keys", 0)
    except ResponseError:  # this user may not ask
        return None
    if policy == NO_EVICTION or not evicted:
        return None
    return f"it has evicted {evicted} keys, queues perhaps: {_remedy(policy)}"


def _remedy(policy: str) -> str:
    return f"set its maxmemory-policy, {policy}, to {NO_EVICTION}"
