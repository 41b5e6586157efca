"""A search tool of an MCP server as a corpus: one call a search, over a connection that is kept."""

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from cotrail.common.optional_packages import check_package, installed_with
from cotrail.common.printable_text import cut, storable
from cotrail.core.questions import Hit
from cotrail.engines.retrieval.retrieve_server import RemoteCorpus, address_of
from cotrail.engines.retrieval.search_server import McpSearch
from cotrail.engines.retrieval.tool_texts import paragraphs_in
from cotrail.errors import StepError, UnavailableError

AWAY = (-32000, "Connection closed")
"""The error by which the library says that nobody answers; servers have errors of their own with this number."""

CLOSING_SECONDS = 10.0
"""How long a server may take to end."""

MOST_SAID = 500
"""Characters that a message has of what a tool says of its failure."""


class McpCorpus(RemoteCorpus):
    """A corpus behind a tool that searches; see `RemoteCorpus`. The order is the tool's; scores are 1 / rank."""

    def __init__(self, name: str, server: McpSearch) -> None:
        check_package("mcp", "mcp")
        self._tool, self._connection = server, _Connection(name, server)
        super().__init__(name, server, self._connection)

    def _ranked(self, query: str, count: int) -> tuple[Hit, ...]:
        tool = self._tool
        arguments = tool.arguments | {tool.query: storable(query)} | ({tool.count: count} if tool.count else {})
        texts = self._event_loop.run(partial(self._connection.called, tool.tool, arguments))
        found = {each.id: each for text in texts for each in paragraphs_in(text)}
        ranked = enumerate(list(found.values())[:count], start=1)
        return tuple(Hit(paragraph=each, rank=rank, score=1 / rank) for rank, each in ranked)


class _Connection:
    """A connection to a server, made by the first call, and again after one that failed."""

    def __init__(self, name: str, server: McpSearch) -> None:
        with installed_with("client"):
            from cotrail.engines.language_models.served.client import key_of
        self._key = key_of(address_of(name, server)) if server.url else ""
        self._name, self._server = name, server
        self._held: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Any] | None = None
        self._closing = asyncio.Event()

    async def called(self, tool: str, arguments: dict[str, Any]) -> list[str]:
        """The texts that a tool answers; raises StepError where it refuses, UnavailableError where nothing answers."""
        import anyio
        import httpx2
        from mcp import MCPError

        lost = (OSError, MCPError, httpx2.HTTPError, anyio.ClosedResourceError, anyio.BrokenResourceError)
        try:
            async with asyncio.timeout(self._server.timeout_seconds):
                client = await self._connected()
                result = await client.call_tool(tool, arguments)
        except Exception as error:
            if isinstance(error, MCPError) and (error.error.code, str(error)) != AWAY:
                refused = f"the tool {tool!r} of the corpus {self._name!r} refuses: {error}; {self._where}"
                raise StepError(refused) from error
            await self.aclose()
            what: BaseException = error
            while isinstance(what, BaseExceptionGroup):
                what = what.exceptions[0]
            said = f"({type(what).__name__}: {what})"
            if isinstance(what, lost):
                raise UnavailableError(f"{self._server.place} doesn't answer {said}") from error
            raise StepError(f"the corpus {self._name!r} can't be searched {said}; {self._where}") from error
        texts = [each.text for each in result.content if each.type == "text"]
        if result.is_error:
            said = cut(" ".join(texts), MOST_SAID)
            raise StepError(f"the tool {tool!r} of the corpus {self._name!r} failed: {said}; {self._where}")
        return texts or [msgspec.json.encode(result.structured_content or []).decode()]

    @property
    def _where(self) -> str:
        return f"look at [mcp.{self._name}] of search.toml"

    async def _connected(self) -> Any:
        if self._held is None or self._held.done() or self._ready is None:
            self._closing = asyncio.Event()
            self._ready = asyncio.get_running_loop().create_future()
            # In a task of its own: a connection has to be left in the task that entered it.
            self._held = asyncio.create_task(self._hold(self._ready, self._closing))
        return await asyncio.shield(self._ready)

    async def _hold(self, ready: "asyncio.Future[Any]", closing: asyncio.Event) -> None:
        try:
            async with AsyncExitStack() as opened:
                ready.set_result(await opened.enter_async_context(self._client(opened)))
                await closing.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error if isinstance(error, Exception) else ConnectionError("it was given up"))
                ready.exception()  # nobody may wait for it any more, of which asyncio would complain
            elif not isinstance(error, Exception):
                raise

    def _client(self, opened: AsyncExitStack) -> Any:
        import httpx2
        from mcp import Client, StdioServerParameters, stdio_client
        from mcp.client.streamable_http import streamable_http_client

        if self._server.command:
            program, *arguments = self._server.command
            server = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
            # A worker's own: what Celery has in its place is no file.
            log = sys.__stderr__ or opened.enter_context(Path(os.devnull).open("w"))  # noqa: SIM115 - closed with the rest
            return Client(stdio_client(server, errlog=log))
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        http = httpx2.AsyncClient(headers=headers, timeout=self._server.timeout_seconds)
        opened.push_async_callback(http.aclose)
        return Client(streamable_http_client(self._server.url, http_client=http))

    async def aclose(self) -> None:
        """End the connection, if there is one."""
        held, self._held = self._held, None
        self._closing.set()
        if held is not None:
            if self._ready and not self._ready.done():
                held.cancel()
            await asyncio.wait([held], timeout=CLOSING_SECONDS)
