"""A proposed table of `models.toml`, with the reason of each line as a comment."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tomli_w

from cotrail.common.printable_text import cut

LONGEST = 300
"""Characters of a comment: a server's message may be any text, and a line break would end a comment."""

GIVEN = "given"
"""The reason of settings that stood in the table before."""


def as_toml(name: str, table: Mapping[str, Any], reasons: Mapping[str, Sequence[str]], notes: Sequence[str]) -> str:
    """The table `[models.NAME]`; objects stand behind it as tables of their own.

    reasons: why, in lines, by the settings' names; those that have none were given. notes: sentences above it.
    """
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    objects = {key: value for key, value in table.items() if isinstance(value, dict)}
    lines = [*map(_comment, notes), tomli_w.dumps({"models": {name: {}}}).strip(), *_settings(plain, reasons)]
    if objects:
        lines += ["", _comment(GIVEN), tomli_w.dumps({"models": {name: objects}}).strip()]
    return "\n".join(lines) + "\n"


def _settings(table: Mapping[str, Any], reasons: Mapping[str, Sequence[str]]) -> Iterator[str]:
    before: Sequence[str] = ()
    for key, value in table.items():
        reason = reasons.get(key) or [GIVEN]
        # One comment is for all lines with the same reason.
        yield from map(_comment, reason if reason != before else ())
        yield tomli_w.dumps({key: value}).strip()
        before = reason


def _comment(text: str) -> str:
    return f"# {cut(text, LONGEST)}"
