"""What the groups of the clients have in common: how they ask."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from cotrail.client.door import RemoteDoor
from cotrail.services.operations.registry import OPERATIONS

_END = object()


class Group:
    """A group of operations; door: carries them out."""

    def __init__(self, door: RemoteDoor) -> None:
        self._door = door

    def _ask(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return self._door.carry_out(OPERATIONS[name], arguments)


class AsyncGroup:
    """The same for a program with an event loop: each request has a thread, and the loop goes on."""

    def __init__(self, door: RemoteDoor) -> None:
        self._door = door

    async def _ask(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return await asyncio.to_thread(self._door.carry_out, OPERATIONS[name], arguments)

    async def _follow(self, name: str, arguments: Mapping[str, Any]) -> AsyncIterator[Any]:
        answer = await self._ask(name, arguments)
        pieces: Iterator[Any] = iter(answer)
        while (piece := await asyncio.to_thread(next, pieces, _END)) is not _END:
            yield piece
