"""Charts as values, for a program to draw: panels of bars or lines, with points out of 100."""

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from cotrail.evaluation.metrics.confidence_intervals import confidence_interval


class ChartPoint(Struct, frozen=True, kw_only=True):
    """A score in points out of 100; `answered` is that of `report_tables.Mean`.

    low, high: the ends of its 95 % confidence interval over questions, where there is one.
    runs: the names in the experiment of the runs that it was computed from.
    """

    value: float
    low: float | None = None
    high: float | None = None
    answered: bool = True
    runs: tuple[str, ...] = ()


def point_of(scores: Sequence[float], value: float, **fields: Any) -> ChartPoint:
    """The point of these questions' scores, from 0 to 1, with their confidence interval; value: their mean."""
    interval = confidence_interval(scores)
    low, high = (100 * interval.low, 100 * interval.high) if interval else (None, None)
    return ChartPoint(value=100 * value, low=low, high=high, **fields)


def point_of_share(count: int, of: int, **fields: Any) -> ChartPoint:
    """The point of a share of questions, with its confidence interval."""
    return point_of([1.0] * count + [0.0] * (of - count), count / of, **fields)


Shade = Literal["light", "middle", "strong"]
"""How much a system stands out: a baseline is light, what a paper is about strong."""


class Series(Struct, frozen=True, kw_only=True):
    """A system's points, one per label; published: their source, empty for own results."""

    system: str
    shade: Shade
    points: tuple[ChartPoint | None, ...]
    published: str = ""


class Panel(Struct, frozen=True, kw_only=True):
    """One of several plots side by side."""

    title: str
    labels: tuple[str, ...]
    series: tuple[Series, ...]


class Chart(Struct, frozen=True, kw_only=True):
    """A chart; name: its file's name; axis, across: titles of the value axis, from 0 to 100, and of the label axis."""

    name: str
    title: str
    axis: str
    kind: Literal["bars", "lines"]
    panels: tuple[Panel, ...]
    across: str = ""

    @property
    def has_intervals(self) -> bool:
        """Whether any point has a confidence interval."""
        return any(
            point.low is not None
            for panel in self.panels
            for series in panel.series
            for point in filter(None, series.points)
        )
