"""Health of the broker: does Redis take messages and keep them, and is it the database's; the roll call of workers."""

import logging
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
from celery import Celery
from kombu.connection import Connection
from msgspec import Struct
from redis import ResponseError
from sqlalchemy import Engine, select, update
from sqlalchemy.engine import Connection as StoreConnection

from cotrail.errors import OutdatedError
from cotrail.models.schema.deployment import check_version, deployment
from cotrail.tasks.routing import BROKER_ERRORS

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 2.0
"""How long a broker may take to answer a health check."""

CHECK_KEY, CHECK_MILLISECONDS = "check", 1000
"""The key that a health check writes, and after how long it is gone."""

TOKEN_KEY = "store"  # noqa: S105 - it opens nothing
"""The key of the token by which processes of one database know its Redis (`Belonging`)."""

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


REFILL_SECONDS = 10.0
"""How long the tokens may differ: a Redis that was emptied has it again with the next sweep of maintenance."""


class Belonging:
    """Whether a process belongs to its database: the version of its code, and the Redis that it is notified through.

    Where two processes of one database have different Redis, what one sends never reaches the other, and workers would
    wait for ever without a word. So the database has a token, and its Redis has the same one under `TOKEN_KEY`: the
    maintenance process that leads puts it there, and all others compare. The methods raise OutdatedError where the
    process doesn't belong to the database. url: of Redis; prefix: the beginning of all keys there.
    """

    def __init__(self, engine: Engine, url: str, prefix: str) -> None:
        self._engine = engine
        self._broker = impatient(url)
        self._prefix = prefix
        self._differs_since: float | None = None
        self._shared: str | None = None
        self._is_away = False

    def check(self) -> bool:
        """Compare, for a process that doesn't lead; returns False while that is undecided, as Redis may be refilled.

        A Redis that doesn't answer decides nothing; that it is away is logged once, until it answers again.
        """
        recorded, address = self._recorded()
        if recorded is None:
            return True
        try:
            found = self._found()
        except BROKER_ERRORS as error:
            if not self._is_away:
                logger.warning("the broker doesn't answer, waiting for it: %s", error)
            self._is_away = True
            return True
        self._is_away = False
        if found == recorded:
            self._differs_since = None
            return True
        now = time.monotonic()
        self._differs_since = self._differs_since or now
        if now - self._differs_since > REFILL_SECONDS:
            raise OutdatedError(
                f"maintenance notifies through {address}, and this process listens to another Redis, {self._address}: "
                "give all processes of a database the same COTRAIL_BROKER_URL and COTRAIL_BROKER_PREFIX"
            )
        return False

    def lead(self) -> None:
        """See to it that both have the token, for the maintenance process that leads; raises BROKER_ERRORS too."""
        recorded, _ = self._recorded()
        found = self._found()
        if recorded is not None and found == recorded:
            self._shared = recorded
            return
        # This process had put its own token there: it was replaced by a process of another database.
        if self._shared is not None and found is not None:
            raise OutdatedError(
                f"another database's processes use {self._address} with the same prefix: give each database a Redis "
                "of its own, or another COTRAIL_BROKER_PREFIX"
            )
        # The same one as before where Redis was emptied: the others, who compare, find it again within
        # `REFILL_SECONDS`.
        token = self._shared or uuid.uuid4().hex
        with self._engine.begin() as connection:
            connection.execute(update(deployment).values(broker=token, broker_address=self._address))
        with self._client() as client:
            client.set(f"{self._prefix}{TOKEN_KEY}", token)
        self._shared = token

    def close(self) -> None:
        """Close the connection to Redis."""
        self._broker.release()

    def _recorded(self) -> tuple[str | None, str | None]:
        with self._engine.connect() as connection:
            check_version(connection)
            return recorded_broker(connection)

    def _found(self) -> str | None:
        with self._client() as client:
            return token_in(client, self._prefix)

    @contextmanager
    def _client(self) -> Iterator[Any]:
        try:
            yield client_of(self._broker)
        except BROKER_ERRORS:
            self._broker.release()  # of several brokers, the next one that answers is taken
            raise

    @property
    def _address(self) -> str:
        return str(self._broker.as_uri())


def recorded_broker(connection: StoreConnection) -> tuple[str | None, str | None]:
    """Return the token of the database's Redis, and its address; None where no maintenance process has led yet."""
    row = connection.execute(select(deployment.c.broker, deployment.c.broker_address)).one()
    return row.broker, row.broker_address
