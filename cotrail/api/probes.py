"""Probes for the service's supervisor, open to anyone: they say yes or no, and the log says why."""

import logging
import os

from litestar import Response, get
from litestar.concurrency import sync_to_thread

from cotrail.api.access import PUBLIC
from cotrail.configuration.variables import STACK, STACK_HEADER
from cotrail.errors import CotrailError
from cotrail.services.readiness import check_ready

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
