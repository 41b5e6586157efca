"""Flower: a web page that shows what Celery does."""

import http.client
import os
import secrets
import socket
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.errors import InputError

HOST = "127.0.0.1"
PORT = 5555
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


def new_access(path: Path) -> Access:
    """Return a free port, and the user and password of the environment, else those kept in the file, else new ones.

    They are kept in the file, for its owner only. Raises InputError for names that Flower can't take.
    """
    kept = read_access(path)
    access = Access(
        port=_free_port(),
        user=os.environ.get(USER) or (kept.user if kept else "cotrail"),
        password=os.environ.get(PASSWORD) or (kept.password if kept else secrets.token_urlsafe(18)),
    )
    if "," in access.credentials or ":" in access.user:
        raise InputError(f"Flower can't take a comma in {USER} or {PASSWORD}, or a colon in {USER}")
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.encode(access))
    return access


def read_access(path: Path) -> Access | None:
    """Return the access that the last start kept, if there was one."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Access)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def answers(port: int) -> bool:
    """Return whether Flower serves pages on that port."""
    connection = http.client.HTTPConnection(HOST, port, timeout=1)
    try:
        connection.request("GET", "/healthcheck")
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, PORT))
        except OSError:
            probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
