"""The client of the service: the operations of `cotrail.services.operations`, carried out by a server.

What is asked and answered are the records of `cotrail.client.records`. These and the methods (`groups`) aren't in git:
they are written from the operations when cotrail is installed or built (the folder building of its repository).
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cotrail.errors import NotInstalledError

if TYPE_CHECKING:
    from cotrail.client.client import AsyncClient as AsyncClient
    from cotrail.client.client import Client as Client

if not all(find_spec(f"{__name__}.{name}") for name in ("groups", "records")):
    raise NotInstalledError(
        "modules of cotrail's client aren't written yet: install cotrail again, or run "
        "`python -m building.clients` in the folder of its repository"
    )


def __getattr__(name: str) -> Any:
    """`Client` and `AsyncClient`, which import all records; the command line needs only the transport."""
    if name not in ("AsyncClient", "Client"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cotrail.client import client

    return getattr(client, name)
