"""Charts as values, for a program to draw: panels of bars or lines, with points out of 100."""

from typing import Literal

from msgspec import Struct


class ChartPoint(Struct, frozen=True, kw_only=True):
    """A score in points out of 100; `deviation` and `answered` are those of `report_tables.Mean`.

    runs: the names in the experiment of the runs that it was computed from.
    """

    value: float
    deviation: float | None = None
    answered: bool = True
    runs: tuple[str, ...] = ()


class Series(Struct, frozen=True, kw_only=True):
    """A system's points, one per label; published: their source, empty for own results."""

    system: str
    points: tuple[ChartPoint | None, ...]
    published: str = ""


class Panel(Struct, frozen=True, kw_only=True):
    """One of several plots side by side."""

    title: str
    labels: tuple[str, ...]
    series: tuple[Series, ...]


class Chart(Struct, frozen=True, kw_only=True):
    """A chart; name: its file's name; axis, across: titles of the value axis and of the label axis.

    bottom: the start of the value axis.
    """

    name: str
    title: str
    axis: str
    kind: Literal["bars", "lines"]
    panels: tuple[Panel, ...]
    across: str = ""
    bottom: float = 0.0
