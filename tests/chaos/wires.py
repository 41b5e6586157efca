"""Proxies between workers and servers that can silently stop passing bytes.

Workers reach PostgreSQL and Redis, and the one that searches the search server, over connections of their own, which
go through here. A wire that is cut keeps its connections: neither side is told that the other one hears nothing, not
even by the network's own signs of life.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from tests.chaos.schedule import SEARCH, SEARCHER, SERVERS, WORKERS
from tests.faults.inner import routes

CHUNK = 65536
"""The most bytes passed on at once."""

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class Wire:
    """The proxy between one worker and one server.

    there, back: set while bytes pass in that direction.
    """

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self.there, self.back = asyncio.Event(), asyncio.Event()
        self.port = 0
        self._carrying: set[asyncio.Task[None]] = set()

    async def lay(self) -> None:
        """Opens it at a port of its own."""
        self.there.set()
        self.back.set()
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def take_up(self) -> None:
        """Closes it and all its connections."""
        self._server.close()
        for connection in self._carrying:
            connection.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._carrying.add(connection)
        connection.add_done_callback(self._carrying.discard)
        ends = [writer]
        try:
            inner_reader, inner_writer = await self._connect()
            ends.append(inner_writer)
            async with asyncio.TaskGroup() as ways:
                ways.create_task(_pass_on(reader, inner_writer, self.there))
                ways.create_task(_pass_on(inner_reader, writer, self.back))
        except* (OSError, EOFError, asyncio.CancelledError):  # the server doesn't run, a side has closed, or `take_up`
            pass
        finally:
            for end in ends:
                end.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passing: asyncio.Event) -> None:
    """Passes bytes on; raises when one side closes. While nothing may pass, a close isn't passed on either."""
    data = b"..."
    while data:
        data = await reader.read(CHUNK)
        await passing.wait()
        writer.write(data)
        await writer.drain()
    raise EOFError


class Wires:
    """The proxies of all workers of one home, served by one thread."""

    def __init__(self, home: Path, sockets: Path, search: int | None = None) -> None:
        """search: the search server's port, if there is one."""
        names = {"postgres": ".s.PGSQL.5432", "redis": "redis.sock"}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="wires", daemon=True)
        self._thread.start()
        ends: dict[str, Connect] = {
            server: partial(asyncio.open_unix_connection, sockets / names[server]) for server in SERVERS
        }
        self._wires = {(worker, server): Wire(ends[server]) for worker in WORKERS for server in SERVERS}
        if search is not None:
            self._wires[SEARCHER, SEARCH] = Wire(partial(asyncio.open_connection, "127.0.0.1", search))
        for wire in self._wires.values():
            asyncio.run_coroutine_threadsafe(wire.lay(), self._loop).result(10)
        ports: dict[str, dict[str, int]] = {worker: {} for worker in WORKERS}
        for (worker, server), wire in self._wires.items():
            ports[worker][server] = wire.port
        routes.write(home, ports)

    def cut(self, worker: str, lost: str) -> None:
        """Stops the traffic: `lost` names the servers, and says `to` or `from` for one direction only."""
        self._set(worker, lost, passing=False)

    def mend(self, worker: str, lost: str) -> None:
        """Lets the traffic pass again."""
        self._set(worker, lost, passing=True)

    def close(self) -> None:
        """Ends the thread and all connections."""
        for wire in self._wires.values():
            asyncio.run_coroutine_threadsafe(wire.take_up(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _set(self, worker: str, lost: str, *, passing: bool) -> None:
        words = lost.split()
        for server in SERVERS if "both" in words else words[-1:]:
            wire = self._wires[worker, server]
            ways = [wire.there] * ("from" not in words) + [wire.back] * ("to" not in words)
            for way in ways:
                self._loop.call_soon_threadsafe(way.set if passing else way.clear)
