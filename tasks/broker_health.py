"""Health of the broker: whether Redis takes messages and keeps them; the roll call of workers over it."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
from celery import Celery
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
        # Against the middle of the round trip, when the server most likely read its clock.
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


# Roll call: every worker is asked over Redis who it is, and those that are there answer (`cotrail.workers.app`).

CALL = "cotrail_roll_call"
"""The name of the remote control command."""

ANSWER_SECONDS = 2.0
"""How long answers are waited for; a worker that computes on all cores takes a while."""


class Present(Struct, frozen=True, kw_only=True):
    """A worker that answered."""

    worker: str
    """The process as the store names it: HOST:PID:KEY."""

    name: str
    host: str
    pid: int

    kinds: tuple[str, ...]
    """The kinds of steps that it carries out."""

    slots: int
    """How many steps at a time."""

    problem: str | None
    """What keeps it from its work."""

    variables: tuple[str, ...]
    """Those of the environment variables that were asked about that it has; never what they hold."""


class RollCall(Struct, frozen=True, kw_only=True):
    """Who answered; problem: why the broker doesn't, where nobody could be asked."""

    present: tuple[Present, ...] = ()
    problem: str | None = None


def call(app: Celery, url: str, variables: Sequence[str] = ()) -> RollCall:
    """Ask all workers of the app's broker, which has that URL. Takes a few seconds at most.

    variables: the names of environment variables of which workers say whether they are set.
    """
    if problem := broker_problem(url, app.conf.broker_transport_options.get("global_keyprefix", "")):
        return RollCall(problem=problem)
    patience = {"socket_timeout": PATIENCE_SECONDS + ANSWER_SECONDS, "socket_connect_timeout": PATIENCE_SECONDS}
    try:
        with app.connection_for_write(transport_options=patience) as connection:
            mailbox = app.control.mailbox(connection)
            # It would send over the app's pool, which is as patient as a worker may be, and keep the pool's broker.
            mailbox.producer_pool = None
            answers = mailbox.multi_call(CALL, {"variables": list(variables)}, timeout=ANSWER_SECONDS)
    except BROKER_ERRORS as error:
        return RollCall(problem=str(error))
    return RollCall(present=tuple(each for answer in answers or () for each in _answers(answer)))


def set_variables(names: Sequence[object]) -> tuple[str, ...]:
    """Those of these environment variables that are set and hold more than white space."""
    return tuple(name for name in names if isinstance(name, str) and os.environ.get(name, "").strip())


def _answers(answer: Mapping[str, Any]) -> list[Present]:
    """The answers by name; what isn't one, as of a worker of another version, is left out."""
    present = []
    for each in answer.values():
        with suppress(msgspec.ValidationError):
            present.append(msgspec.convert(each, Present))
    return present
