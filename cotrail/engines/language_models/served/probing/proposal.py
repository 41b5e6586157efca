"""A proposed table of `models.toml`, with the reason of each line as a comment."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tomli_w

from cotrail.common.printable_text import cut

LONGEST = 300
"""Characters of a comment: a server's message may be any text, and a line break would end a comment."""


def as_toml(name: str, table: Mapping[str, Any], reasons: Mapping[str, Sequence[str]], notes: Sequence[str]) -> str:
    """The table `[models.NAME]`; objects stand behind it as tables of their own.

    reasons: why, in lines, by the settings' names; those that have none were given. notes: sentences above it.
    """
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    objects = {key: value for key, value in table.items() if isinstance(value, dict)}
    lines = [*map(_comment, notes), tomli_w.dumps({"models": {name: {}}}).strip(), *_settings(plain, reasons)]
    if objects:
        lines += ["", _comment("given"), tomli_w.dumps({"models": {name: objects}}).strip()]
    return "\n".join(lines) + "\n"


def _settings(table: Mapping[str, Any], reasons: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for key, value in table.items():
        yield from map(_comment, reasons.get(key) or ["given"])
        yield tomli_w.dumps({key: value}).strip()


def _comment(text: str) -> str:
    return f"# {cut(text, LONGEST)}"
