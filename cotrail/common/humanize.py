"""Numbers, counts, durations and times as people read them."""

from collections.abc import Mapping, Sized
from datetime import datetime
from typing import Annotated

from msgspec import Meta

Positive = Annotated[int, Meta(ge=1, le=2**31 - 1)]

RetrievalCount = Annotated[int, Meta(ge=1, le=10_000)]
"""Paragraphs of a search: more than these no prompt takes and no list of results is read to."""

Temperature = Annotated[float, Meta(ge=0, le=10)]
"""What a text is drawn at; 0 takes the likeliest tokens."""

MOST_DAYS = 36_600
"""A hundred years, the longest time in days."""


def rounded(value: float, decimals: int) -> float:
    """The value with this many decimals; never -0.0, whose JSON, and with it the digest, differs from that of 0.0."""
    return round(value, decimals) + 0.0


def largest_first(parts: Mapping[str, Sized]) -> list[str]:
    """The kinds of things by how many each has, equal ones by name."""
    return sorted(parts, key=lambda kind: (-len(parts[kind]), kind))


def duration(seconds: float) -> str:
    """e.g. `0.3 ms`, `80 ms`, `4.2 s`, `42 s`, `3 min 05 s`, `2 h 10 min`."""
    if seconds < 0.0005:
        return f"{seconds * 1000:.1g} ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02} min"


def rate(value: float) -> str:
    """A number a second, with two digits where it is small: `0.024`, `3.1`, `1,204`."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 or not value else f"{value:.2g}"


def size(value: int) -> str:
    """Bytes, with a unit that leaves digits: `812 bytes`, `71 KiB`, `3.4 MiB`, `35 GiB`."""
    if value < 1024:
        return count(value, "byte")
    if value >= 2**34:
        return f"{value / 2**30:,.0f} GiB"
    return f"{value / 1024:,.0f} KiB" if value < 2**20 else f"{value / 2**20:,.1f} MiB"


def number(value: float | None, digits: int = 3) -> str:
    """A mean, or a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def percent(value: float | None, digits: int = 1) -> str:
    """A share of 1, e.g. `48.1 %`, or a dash where there is none."""
    return "-" if value is None else f"{100 * value:.{digits}f} %"


def metric_value(value: float | None, *, counted: bool) -> str:
    """A metric's value, as every page and table has it: `48.1 %`, `3.25` of a number of things, or a dash."""
    return number(value, 2) if counted else percent(value)


def percent_range(low: float, high: float) -> str:
    """e.g. `43.0 to 53.2`, in percent."""
    return f"{100 * low:.1f} to {100 * high:.1f}"


def moment(at: datetime, *, seconds: bool = False) -> str:
    """A time with its zone, this process's: `2026-11-28 12:22 UTC`."""
    return f"{at.astimezone():%Y-%m-%d %H:%M{':%S' if seconds else ''} %Z}"


def within_sentence(title: str) -> str:
    """A title as it stands within a sentence: `answer F1` of `Answer F1`; abbreviations stay, as in `ROUGE-L`."""
    return title if title[1:2].isupper() else f"{title[:1].lower()}{title[1:]}"


def count(value: int, noun: str) -> str:
    """e.g. `1 question`, `1,200 questions`."""
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"
