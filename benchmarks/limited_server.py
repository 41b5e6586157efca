"""A server of OpenAI's chat API in this process that holds the limits of an account, and answers nothing of sense."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from benchmarks.limited_account import Account, Answer

CHARACTERS = 5
"""Characters of a prompt that count as a token."""


class LimitedServer:
    """The server of an account; every request that doesn't fit its limits is refused with 429."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        """Begins to listen; returns the address."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def close(self) -> None:
        """Listens no longer."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(head.partition("content-length: ")[2].split("\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                writer.write(_response(*await self._answer(head.split()[1], body)))
                await writer.drain()
        writer.close()

    async def _answer(self, path: str, body: Mapping[str, Any]) -> tuple[int, Any, dict[str, str]]:
        if not path.endswith("/chat/completions"):
            return 404, {"detail": "Not Found"}, {}
        read = sum(len(message["content"]) for message in body["messages"]) // CHARACTERS
        answer = self._account.ask(read, int(body["max_tokens"]))
        if not isinstance(answer, Answer):
            return 429, {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, answer
        await asyncio.sleep(answer.seconds)
        self._account.end(answer)
        usage = {"prompt_tokens": read, "completion_tokens": answer.written, "total_tokens": read + answer.written}
        choice = {"index": 0, "message": {"role": "assistant", "content": "Brenn."}, "finish_reason": "stop"}
        return 200, {"choices": [choice], "usage": usage}, answer.headers


def _response(status: int, content: Any, headers: Mapping[str, str]) -> bytes:
    body = json.dumps(content).encode()
    fields = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} Scripted\r\n{lines}\r\n".encode() + body
