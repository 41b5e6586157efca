"""Whether a process belongs to its database: the version of its code, and the Redis that it is notified through.

Where two processes of one database have different Redis, what one sends never reaches the other, and workers would wait
for ever without a word. So the database has a token, and its Redis has the same one under `TOKEN_KEY`: the maintenance
process that leads puts it there, and all others compare.
"""

import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, select, update

from cotrail.errors import OutdatedError
from cotrail.models.schema.deployment import check_version, deployment
from cotrail.tasks.broker_health import TOKEN_KEY, client_of, impatient, token_in
from cotrail.tasks.routing import BROKER_ERRORS

logger = logging.getLogger(__name__)

REFILL_SECONDS = 10.0
"""How long the tokens may differ: a Redis that was emptied has it again with the next sweep of maintenance."""


class Belonging:
    """One for each process. Its methods raise OutdatedError where the process doesn't belong to the database.

    url: of Redis; prefix: the beginning of all keys there.
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


def recorded_broker(connection: Connection) -> tuple[str | None, str | None]:
    """Return the token of the database's Redis, and its address; None where no maintenance process has led yet."""
    row = connection.execute(select(deployment.c.broker, deployment.c.broker_address)).one()
    return row.broker, row.broker_address
