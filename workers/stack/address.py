"""The address of the stack's service over HTTP, which stays the same from one start to the next where it can."""

from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.workers.stack.process import write_json
from cotrail.workers.stack.web import HOST, free_port

HEALTH, READY = "/health", "/ready"


class Address(Struct, frozen=True, kw_only=True):
    """The port on loopback."""

    port: int

    @property
    def url(self) -> str:
        """The address for `--server`."""
        return f"http://{HOST}:{self.port}"


def new_address(path: Path, wanted: int) -> Address:
    """Return an address that is free now, the kept one if possible, else the wanted port, and keep it in the file."""
    kept = read_address(path)
    address = Address(port=free_port(*([kept.port] if kept else []), wanted))
    write_json(path, address)
    return address


def read_address(path: Path) -> Address | None:
    """Return the address that was kept, if there is one."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Address)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
