"""Charts as values, for a program to draw: panels of bars or lines, with points out of 100."""

from typing import Literal

from msgspec import Struct


class Point(Struct, frozen=True, kw_only=True):
    """A score in points out of 100; the rest as in `measures.Mean`."""

    value: float
    deviation: float | None = None
    answered: bool = True


class Series(Struct, frozen=True, kw_only=True):
    """A system's points, one a label; `published`: whose they are, empty for one's own."""

    system: str
    points: tuple[Point | None, ...]
    published: str = ""


class Panel(Struct, frozen=True, kw_only=True):
    """One of the charts side by side."""

    title: str
    labels: tuple[str, ...]
    series: tuple[Series, ...]


class Chart(Struct, frozen=True, kw_only=True):
    """A figure: `name` for its file, `axis` for what its values are, `across` for what its labels are.

    bottom: where the axis of values begins.
    """

    name: str
    title: str
    axis: str
    kind: Literal["bars", "lines"]
    panels: tuple[Panel, ...]
    across: str = ""
    bottom: float = 0.0
