"""Probes for the service's supervisor, open to anyone: they say yes or no, and the log says why."""

import asyncio
import logging
import os
from typing import Any

from litestar import Response, get
from litestar.concurrency import sync_to_thread
from uvicorn.logging import AccessFormatter
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from cotrail.api.access import PUBLIC
from cotrail.api.problems import request_id
from cotrail.configuration.variables import STACK, STACK_HEADER
from cotrail.errors import CotrailError
from cotrail.services.diagnosing import check_ready
from cotrail.workers.celery_app import app as app

logger = logging.getLogger(__name__)


@get("/health", opt={PUBLIC: True}, include_in_schema=False)
async def health() -> Response[bytes]:
    """Whether the process is alive."""
    return _said("alive", 200)


@get("/ready", opt={PUBLIC: True}, include_in_schema=False)
async def ready() -> Response[bytes]:
    """Whether it can do its work: PostgreSQL and Redis answer, and the schema is up to date."""
    try:
        await sync_to_thread(check_ready)
    except CotrailError as error:
        logger.warning("not ready: %s", error)
        return _said("not ready", 503)
    return _said("ready", 200)


def _said(word: str, status: int) -> Response[bytes]:
    stack = os.environ.get(STACK)
    headers = {STACK_HEADER: stack} if stack else {}
    return Response(f"{word}\n".encode(), status_code=status, media_type="text/plain", headers=headers)


PROBES = (health, ready)


# How long the service waits for the rest of a request: uvicorn itself waits for ever.

HEAD_SECONDS = 30.0
"""How long a connection may take to send the head of a request, however slowly it comes."""

BODY_SECONDS = 60.0
"""How long nothing may come of the body of a request that isn't complete."""


class Patient(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's protocol, which closes connections whose request stays half sent."""

    _timer: asyncio.TimerHandle | None = None
    _in_head = False

    def connection_made(self, transport: Any) -> None:
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        super().data_received(data)
        self._expect()

    def connection_lost(self, error: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._stop()
        super().connection_lost(error)

    def _expect(self) -> None:
        """Wait for the rest of a head from its beginning on, and for that of a body from its last bytes on."""
        in_head = self.cycle is None or self.cycle.response_complete
        if in_head and self._in_head and self._timer is not None:
            return
        self._stop()
        self._in_head = in_head
        if in_head or self.cycle.more_body:
            self._timer = self.loop.call_later(HEAD_SECONDS if in_head else BODY_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._timer = None
        if self.flow.read_paused:  # what the client sends waits until the body is read so far
            self._expect()
        else:
            self.transport.close()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


# The ids of requests in what is logged while they are answered.

ACCESS = "uvicorn.access"

ACCESS_FORMAT = '%(levelprefix)s %(client_addr)s - "%(request_line)s" %(status_code)s [%(request_id)s]'


def name_requests() -> None:
    """Have each record of this process say which request it belongs to, if it does to any."""
    make = logging.getLogRecordFactory()

    def made(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = make(*arguments, **named)
        record.request_id = id_ = request_id.get()
        if record.name == ACCESS and isinstance(record.args, tuple):
            record.args = tuple(map(_without_query, record.args))
        if id_ and record.name != ACCESS:  # its formatter shows other parts than the message
            record.msg = f"{record.msg} [{id_}]"
        return record

    logging.setLogRecordFactory(made)
    for handler in logging.getLogger(ACCESS).handlers:
        handler.setFormatter(AccessFormatter(ACCESS_FORMAT))


def _without_query(part: object) -> object:
    """A part of what is logged of a request, without its query: some clients put a secret there."""
    return part.partition("?")[0] if isinstance(part, str) else part
