"""What stands in forms, as operations take it."""

from typing import Any

from cotrail.common.structs import assigned
from cotrail.core.ports.roles import ROLES


def changes(text: str) -> dict[str, Any]:
    """What a fork changes, from lines `key = value`; raises InputError."""
    pairs = (line.partition("=") for line in lines(text).split("\n") if line.strip())
    return assigned(
        [f"{key.strip()}{equals}{value.strip()}" for key, equals, value in pairs], texts={"model", "profile", *ROLES}
    )


def lines(text: str | None) -> str:
    """A text as a form sends it back, whose browser ends lines in its own way."""
    return (text or "").replace("\r\n", "\n").replace("\r", "\n")


def words(text: str) -> list[str]:
    """What stands between commas, each once."""
    return list(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
