"""The clients of a service, for programs: each operation is a method of its group.

    with Client("https://cotrail.example.org", token) as client:
        print(client.runs.show("latest").state)

Errors are those of the command line (`cotrail.errors`). Where the connection is lost or the service is away for a
moment, requests that may be sent twice are sent again: those that change nothing more the second time, as they
are or by an `Idempotency-Key`, which the client chooses.
"""

from types import TracebackType
from typing import Self

from cotrail.client.groups import AsyncGroups, Groups
from cotrail.client.transport import AsyncRemoteTransport, RemoteTransport


class Client(Groups):
    """A client.

    url: the service's address, without `/v1`; token: a token of its, none where it needs none.
    """

    def __init__(self, url: str, token: str = "") -> None:
        self._transport = RemoteTransport(url, token)
        super().__init__(self._transport)

    def close(self) -> None:
        """Close its connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


class AsyncClient(AsyncGroups):
    """A client whose methods are awaited, and whose streams are asynchronous iterators."""

    def __init__(self, url: str, token: str = "") -> None:
        self._transport = AsyncRemoteTransport(url, token)
        super().__init__(self._transport)

    async def close(self) -> None:
        """Close its connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.close()
