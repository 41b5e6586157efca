"""The stack's web servers: their ports and tokens, the service's address, and Flower."""

import http.client
import logging
import os
import secrets
import socket
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.configuration.variables import STACK_HEADER
from cotrail.errors import InputError, UnavailableError
from cotrail.workers.health import Problem
from cotrail.workers.stack.process import read_json, write_json

# What the stack's web servers have in common: a port on loopback, and a page that says that they work.

HOST = "127.0.0.1"
PATIENCE_SECONDS = 5.0
"""How long a page may take."""

WAITING = 2048
"""How many connections may wait until the server takes them."""


def listening(*wanted: int) -> socket.socket:
    """Return a socket that listens on the first of these ports that nobody has, or on any.

    The server is handed the socket itself: a port that is looked for and then named may be another's by then.
    """
    for port in (*wanted, 0):
        listener = socket.socket()
        # Without it, a port couldn't be taken again for a minute after the last server's connections were closed.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
            listener.listen(WAITING)  # two sockets may be bound to a port, and one alone may listen
        except OSError:
            listener.close()
        else:
            return listener
    raise UnavailableError(f"no port of {HOST} is free; end what uses them")


def handed(descriptor: int) -> socket.socket:
    """Return the listening socket that this process was handed. Raises InputError where that is none."""
    try:
        listener = socket.socket(fileno=descriptor)
        listens = listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        raise InputError(f"--fd {descriptor} is no socket ({error.strerror}); use --port") from error
    if not listens:
        raise InputError(f"--fd {descriptor} is no socket that listens; use --port")
    return listener


def port_of(listener: socket.socket) -> int:
    """Return the port on which a socket listens."""
    port: int = listener.getsockname()[1]
    return port


def answers(port: int, path: str, header: tuple[str, str] | None = None) -> bool:
    """Return whether the server on that port has the page, with that header and value."""
    connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status == http.HTTPStatus.OK and (header is None or answer.getheader(header[0]) == header[1])
    except (OSError, http.client.HTTPException):  # another program may listen there
        return False
    finally:
        connection.close()


def problem(*, answering: bool) -> Problem | None:
    """Return what keeps a server from its work that answers, or doesn't."""
    return None if answering else Problem(said="it doesn't answer", restart=True)


HEALTH, READY = "/health", "/ready"


# The address of the stack's service over HTTP, which stays the same from one start to the next where it can.


class Address(Struct, frozen=True, kw_only=True):
    """The port on loopback; stack: the id by which the service there says whose it is."""

    port: int
    stack: str

    @property
    def url(self) -> str:
        """The address for `--server`."""
        return f"http://{HOST}:{self.port}"


def kept_address(path: Path, wanted: int) -> Address:
    """Return the address in the file, which is made where there is none, with the wanted port."""
    address = read_address(path)
    if address is None:
        write_json(path, address := Address(port=wanted, stack=secrets.token_hex(8)))
    return address


def listen(path: Path, wanted: int) -> socket.socket:
    """Return a socket that listens on the kept port, else the wanted one, else any; the file then has that port."""
    kept = kept_address(path, wanted)
    listener = listening(kept.port, wanted)
    write_json(path, replace(kept, port=port_of(listener)))
    return listener


def has(path: Path, page: str) -> bool:
    """Return whether this stack's service answers with that page, at the address in the file."""
    address = read_address(path)
    return address is not None and answers(address.port, page, (STACK_HEADER, address.stack))


def read_address(path: Path) -> Address | None:
    """Return the address that was kept, if there is one."""
    return read_json(path, Address)


logger = logging.getLogger(__name__)

PORT = 5555
FLOWER_HEALTH = "/healthcheck"

USER, PASSWORD = "COTRAIL_FLOWER_USER", "COTRAIL_FLOWER_PASSWORD"


class Access(Struct, frozen=True, kw_only=True):
    """Access to Flower: port and credentials."""

    port: int
    user: str
    password: str

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.port}/"

    @property
    def credentials(self) -> str:
        """User and password as Flower takes them."""
        return f"{self.user}:{self.password}"


def access_on(port: int, kept: Access | None = None) -> Access:
    """Return the access with user and password of the environment, else the kept ones, else a new password.

    Raises InputError for names that Flower can't take.
    """
    access = Access(
        port=port,
        user=os.environ.get(USER) or (kept.user if kept else "cotrail"),
        password=os.environ.get(PASSWORD) or (kept.password if kept else secrets.token_urlsafe(18)),
    )
    if "," in access.credentials or ":" in access.user:
        raise InputError(f"Flower can't take a comma in {USER} or {PASSWORD}, or a colon in {USER}")
    return access


def new_access(path: Path, port: int = PORT) -> Access:
    """Return the access, and keep it in the file, for its owner only, so that the next start has it."""
    access = access_on(port, read_access(path))
    # A new file each time, which is its owner's alone from the start; an older one may have other permissions.
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.encode(access))
    return access


def listen_for_flower(path: Path) -> socket.socket:
    """Return a socket that listens on the port in the file, or on another one; the file then has that port."""
    kept = read_access(path)
    listener = listening(*([kept.port] if kept else []), PORT)
    new_access(path, port_of(listener))
    return listener


def healthy(path: Path) -> bool:
    """Return whether Flower answers at the port in the file."""
    access = read_access(path)
    return access is not None and answers(access.port, FLOWER_HEALTH)


def read_access(path: Path) -> Access | None:
    """Return the access that the last start kept, if there was one."""
    return read_json(path, Access)


def left_out() -> list[str]:
    """The user's own settings of Flower, which it isn't given: some of them open it to anyone."""
    return sorted(name for name in os.environ if name.startswith("FLOWER_"))


def warn_of_left_out() -> None:
    """Log which of them there are."""
    if names := left_out():
        logger.warning("Flower gets none of the variables %s: some open it to anyone", ", ".join(names))
