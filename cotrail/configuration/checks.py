"""Checks of what settings name: the broker, the database, folders."""

import os
import sys
import tomllib
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qsl

from pydantic import SecretStr, ValidationError
from pydantic_core import PydanticCustomError

from cotrail.common.printable_text import one_line, printable
from cotrail.common.refusals import shown
from cotrail.common.server_addresses import read_address, shown_address
from cotrail.configuration.variables import PREFIX
from cotrail.errors import InputError, OutdatedError

ADDRESSES = ("database_url", "broker_url", "search_url")
SECRETS = ("search_api_key",)

_WORDS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


def settings_refusal(error: ValidationError) -> str:
    """The message about the first setting that can't be used, with its value as far as that is no secret."""
    first = error.errors(include_input=False)[0]
    field, *parts = (str(part) for part in first["loc"])
    template = _WORDS["kinds"].get(first["type"])
    words = template.format(**first.get("ctx", {})) if template else first["msg"].removeprefix("Value error, ")
    reason = ": ".join((*parts, words))
    variable = f"{PREFIX}{field.upper()}"
    return f"the environment variable {variable}{_given(field)} can't be used: {reason}; correct it or unset it"


def _given(field: str) -> str:
    """The variable's value in parentheses; empty where it is a secret."""
    if field in SECRETS:
        return ""
    variable = next((value for name, value in os.environ.items() if name.upper() == f"{PREFIX}{field.upper()}"), "")
    value = shown_address(variable.strip()) if field in ADDRESSES else variable
    return f" ({shown(value)})" if value else ""


@contextmanager
def refusing() -> Iterator[None]:
    """End the process with one line and the exit code 2 where a person has to act; the command line has its own."""
    try:
        yield
    except (InputError, OutdatedError) as error:
        print(f"cotrail: {one_line(printable(str(error)))}", file=sys.stderr)  # noqa: T201 - nothing is set up yet
        raise SystemExit(2) from None


BROKER_SCHEMES = ("redis", "rediss", "redis+socket")

_REDIS = "redis://:password@host:6379/0, rediss:// for TLS, or redis+socket:///path"


def check_broker(url: SecretStr) -> SecretStr:
    """Refuse URLs of other brokers than Redis and Valkey, naming the reason; semicolons separate several URLs."""
    for each in url.get_secret_value().split(";"):
        scheme = each.partition("://")[0] if "://" in each else ""
        if scheme not in BROKER_SCHEMES:
            # The scheme isn't quoted: in a URL without one, a password may stand in its place.
            hints = [_WORDS["brokers"][part] for part in reversed(scheme.split("+")) if part in _WORDS["brokers"]]
            reason = hints[0] if hints else f"the broker must be Redis or Valkey: {_REDIS}"
            raise PydanticCustomError("broker", "{reason}", {"reason": reason})
    return url


DATABASE_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")


def check_database(url: SecretStr) -> SecretStr:
    """Refuse what isn't PostgreSQL's address, and parameters that its client library doesn't know."""
    query = read_address(url.get_secret_value(), DATABASE_SCHEMES).query
    if query:
        _check_parameters(query)
    return url


def _check_parameters(query: str) -> None:
    from psycopg.pq import Conninfo  # imported on use: it takes long, and few addresses have parameters

    parameters = {option.keyword.decode() for option in Conninfo.get_defaults()}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in parameters:
            raise ValueError("PostgreSQL's client library doesn't know one of its parameters, behind the question mark")
        if name == "port" and not all(port.isdecimal() for port in value.split(",")):
            raise ValueError("its parameter port is no number")


def on_one_line(text: str) -> str:
    """Raise ValueError where a text holds line breaks, other control characters, or bytes that aren't UTF-8."""
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise ValueError("it holds a line break, another control character, or bytes that aren't UTF-8")
    return text


def check_folder(path: Path) -> Path:
    """The absolute path of a folder, which needn't exist yet; ValueError where it can't be one or can't be read."""
    on_one_line(str(path))
    try:
        folder = path.expanduser().absolute()
        there = next(each for each in (folder, *folder.parents) if each.exists())
    except (OSError, RuntimeError) as error:
        raise ValueError(f"it can't be looked at ({getattr(error, 'strerror', None) or error})") from None
    if not there.is_dir():
        raise ValueError(f"{there} is a file; name a folder")
    if not os.access(there, os.R_OK | os.X_OK):
        raise ValueError(f"{there} can't be read by this user; change its permissions or name another folder")
    return folder
