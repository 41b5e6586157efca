"""The client of the service: the operations of `cotrail.services.operations`, carried out by a server."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cotrail.client.client import AsyncClient as AsyncClient
    from cotrail.client.client import Client as Client


def __getattr__(name: str) -> Any:
    """`Client` and `AsyncClient`, which import all operations: the command line needs only the door."""
    if name not in ("AsyncClient", "Client"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cotrail.client import client

    return getattr(client, name)
