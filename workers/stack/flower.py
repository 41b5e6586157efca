"""Flower: a web page that shows what Celery does."""

import logging
import os
import secrets
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.errors import InputError
from cotrail.workers.stack.web import HOST, free_port

logger = logging.getLogger(__name__)

PORT = 5555
HEALTH = "/healthcheck"

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


def new_access(path: Path) -> Access:
    """Return the access on a free port, and keep it in the file, for its owner only, so that the next start has it."""
    access = access_on(free_port(PORT), read_access(path))
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


def left_out() -> list[str]:
    """The user's own settings of Flower, which it isn't given: some of them open it to anyone."""
    return sorted(name for name in os.environ if name.startswith("FLOWER_"))


def warn_of_left_out() -> None:
    """Log which of them there are."""
    if names := left_out():
        logger.warning("Flower gets none of the variables %s: some open it to anyone", ", ".join(names))
