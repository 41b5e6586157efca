"""Recording of who asked to change what: after the answer, so that nobody waits for it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from typing import Any

from litestar import Litestar

from cotrail.errors import CotrailError, UnavailableError
from cotrail.services.access.projects import Activity, record

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 5.0
"""When it is tried again, where the store doesn't answer."""

MOST_WAITING = 10_000
"""The largest number of activities that wait for the store; further ones are only logged."""

ACTIVITIES = "activities"
"""The key of an application's state under which they are."""

made: ContextVar[list[str]] = ContextVar("made")
"""The ids of what the request that is being answered makes."""


class Activities:
    """The activities that aren't stored yet."""

    def __init__(self) -> None:
        self._waiting: list[Activity] = []
        self._noted, self._ends = asyncio.Event(), asyncio.Event()
        self._turn = asyncio.Lock()

    def note(self, activity: Activity) -> None:
        """Store an activity soon."""
        if len(self._waiting) >= MOST_WAITING:
            logger.error("an activity isn't recorded, as the store doesn't answer: %s", activity)
            return
        self._waiting.append(activity)
        self._noted.set()

    @asynccontextmanager
    async def kept(self, app: Litestar) -> AsyncIterator[None]:
        """Have activities be stored while the service is there, the last ones as it ends."""
        app.state[ACTIVITIES] = self
        keeping = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            self._ends.set()
            self._noted.set()
            await keeping
            await self._store()

    async def _keep(self) -> None:
        while not self._ends.is_set():
            await self._noted.wait()
            self._noted.clear()
            if not await self._store():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ends.wait(), AGAIN_SECONDS)
                self._noted.set()

    async def settle(self) -> None:
        """Have all that was noted by now be stored, for who looks for it there."""
        await self._store()

    async def _store(self) -> bool:
        """Store what waits, behind what is being stored; returns whether the store answered."""
        async with self._turn:
            return await self._store_rows()

    async def _store_rows(self) -> bool:
        rows, self._waiting = self._waiting, []
        try:
            if rows:
                await asyncio.to_thread(record, rows)
        except UnavailableError as error:
            logger.warning("%d activities wait for the store: %s", len(rows), error)
            self._waiting = [*rows, *self._waiting]
            return False
        except CotrailError:
            logger.exception("activities can't be recorded: %s", rows)
        return True


def activities_of(app: Litestar) -> Activities:
    """The activities of an application that aren't stored yet."""
    found: Activities = app.state[ACTIVITIES]
    return found


def note_made(answer: Any) -> None:
    """Note the id of what an answer tells was made: a run, the first of several, a job, a token or a project."""
    runs = getattr(answer, "runs", None)
    of = runs[0] if isinstance(runs, tuple) and runs else answer
    ids = (getattr(of, name, None) for name in ("run", "job", "id", "name"))
    made.get([]).extend(each for each in ids if isinstance(each, str))
