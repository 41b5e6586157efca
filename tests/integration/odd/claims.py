"""What no page, command or answer may say, whatever it is about: figures that claim more than there is, and no values.

Texts of questions, models and corpora stand in pages too; those of the odd store have none of these words.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

_NO_VALUE = re.compile(r"(?<![\w.-])(?:nan|-?inf(?:inity)?|None(?![.:])|undefined|NaN|Traceback)(?![\w-])")
_SHARE = re.compile(r"(?<![\w.,-])(\d[\d,]*) of (\d[\d,]*)(?![\w.,])")
_PERCENT = re.compile(r"(?<![\w.-])(\d+(?:\.\d+)?) ?%")
_EMPTY_CLAUSE = re.compile(r", ,|: ,|\( ?\)|, ?$", re.MULTILINE)


def false_claims(said: str) -> Iterator[str]:
    """Each such place of a text, with what surrounds it."""
    for pattern in (_NO_VALUE, _EMPTY_CLAUSE):
        yield from (_around(said, found) for found in pattern.finditer(said))
    for found in _SHARE.finditer(said):
        part, whole = (int(each.replace(",", "")) for each in found.groups())
        if part > whole:
            yield _around(said, found)
    yield from (_around(said, found) for found in _PERCENT.finditer(said) if float(found[1]) > 100)


def impossible(value: Any, place: str = "") -> Iterator[str]:
    """Each number of a decoded answer that can't be, with where it stands."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from impossible(each, f"{place}.{name}")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from impossible(each, f"{place}[{number}]")
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{place} is {value}"


def _around(said: str, found: re.Match[str]) -> str:
    return f"…{said[max(found.start() - 40, 0) : found.end() + 40]}…".replace("\n", "⏎")
