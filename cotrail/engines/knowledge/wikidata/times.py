"""Times of Wikidata in words, as precise as years (as in the authors' code)."""

from msgspec import Struct

MILLENNIUM, CENTURY, DECADE, YEAR = 6, 7, 8, 9
"""Wikidata's numbers of precision; higher ones are more precise, lower ones say next to nothing."""


class Time(Struct, frozen=True):
    """A time of Wikidata: `+1980-05-26T00:00:00Z`, `-0322-...` for 322 BC."""

    time: str
    precision: int


def in_words(value: Time) -> str | None:
    """E.g. `1980`, `322 BC`, `the 1980s`, `the 4th century BC`; None where it is less precise than a millennium."""
    year = int(value.time[1:].split("-")[0])
    era = " BC" if value.time.startswith("-") else ""
    if value.precision >= YEAR:
        return f"{year}{era}"
    match value.precision:
        case 8:
            return f"the {year - year % 10}s{era}"
        case 7:
            # Rounded up: 1901 and 2000 are both in the 20th century.
            return f"the {_ordinal(-(-year // 100))} century{era}"
        case 6:
            return f"the {_ordinal(-(-year // 1000))} millennium{era}"
    return None


def _ordinal(number: int) -> str:
    teens = number % 100 in {11, 12, 13}
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
