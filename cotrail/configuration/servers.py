"""The file `servers.toml`: names for the services that this person uses, and where their tokens are.

[servers.team]
url = "https://cotrail.example.org"
token_variable = "TEAM_TOKEN"      # an environment variable
token_file = "team.token"          # or a file that only its owner can read
"""

import os
import stat
from pathlib import Path

from msgspec import Struct

from cotrail.common.nearest import unknown
from cotrail.common.toml_files import read_toml_as
from cotrail.engines.server_address import VariableName
from cotrail.errors import InputError

TOKEN = "COTRAIL_TOKEN"  # noqa: S105 - the name of the variable
"""The environment variable of the token where a server's entry names neither variable nor file."""


class ServerEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A service: its address without `/v1`, and where its token is."""

    url: str
    token_variable: VariableName | None = None
    token_file: str | None = None

    def __post_init__(self) -> None:
        if self.token_variable and self.token_file:
            raise ValueError("`token_variable` and `token_file` both say where the token is; give one of the two")


class Server(Struct, frozen=True, kw_only=True):
    """A service and a token of its, empty for none."""

    url: str
    token: str


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    servers: dict[str, ServerEntry] = {}


def find_server(name: str, home: Path) -> Server:
    """The service at an address, or of a name in `servers.toml` of the home; raises InputError."""
    if name.startswith(("http://", "https://")):
        return Server(url=name, token=os.environ.get(TOKEN, ""))
    entries = _read(home / "servers.toml")
    if name not in entries:
        raise InputError(f"{unknown('server', name, entries)}; servers.toml in COTRAIL_HOME names them, or give a URL")
    entry = entries[name]
    if entry.token_file:
        return Server(url=entry.url, token=_token_in(home / entry.token_file))
    variable = entry.token_variable or TOKEN
    if entry.token_variable and not os.environ.get(variable):
        raise InputError(f"the environment variable {variable}, which holds the token of {name}, isn't set")
    return Server(url=entry.url, token=os.environ.get(variable, ""))


def _read(path: Path) -> dict[str, ServerEntry]:
    return read_toml_as(path, "the list of servers", _File).servers


def _token_in(path: Path) -> str:
    """The token in a file, which others must not be able to read."""
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise InputError(f"others can read {path}, which holds a token; `chmod 600 {path}`")
        return path.read_text("utf-8").strip()
    except OSError as error:
        raise InputError(f"{path}, which holds a token, can't be read ({error.strerror}); check the path") from error
