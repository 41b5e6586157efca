"""Figures of experiments as parts of a page: in the page's colours, with ids of their own, and the runs behind them."""

import re
from collections.abc import Iterator

from msgspec import Struct

from cotrail.common.printable_text import one_line, printable
from cotrail.evaluation.experiments.charts import Chart, Panel
from cotrail.services.views.reports.figures import (
    GRID,
    INK,
    PAPER,
    SOFT,
    columns_on_page,
    legend_svgs,
    notes,
    panel_svgs,
)

COLOURS = {INK: "currentColor", SOFT: "var(--soft)", GRID: "var(--line)", PAPER: "var(--raised)"}
"""A page's colours, which differ in light and dark, for those of a drawing."""

_COLOUR = re.compile("|".join(COLOURS))
_IDENTIFIER = re.compile(r'(\bid="|url\(#|href="#)')
_SHEET = re.compile(r"<style[^<]*</style>")
_TAG = re.compile(r"<[^<>]+>")
_STYLE = re.compile(r'style="([^"]*)"')

ROUNDED = '<svg stroke-linejoin="round" stroke-linecap="butt"'
"""What matplotlib's style element says of all that a drawing has."""


class RunsOfPoints(Struct, frozen=True, kw_only=True):
    """The runs behind points of a figure; title: which points these are."""

    title: str
    runs: tuple[str, ...]


class PageFigure(Struct, frozen=True, kw_only=True):
    """A figure on a page; columns: its panels side by side; legend: the mark of each entry as SVG, and its words.

    panels: the title and the SVG of each.
    """

    name: str
    title: str
    columns: int
    legend: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    panels: tuple[tuple[str, str], ...]
    points: tuple[RunsOfPoints, ...]


def page_figure(plot: Chart) -> PageFigure:
    """The figure; raises UnavailableError where matplotlib isn't installed."""
    drawings = (page_drawing(svg, f"{plot.name}-{number}") for number, svg in enumerate(panel_svgs(plot)))
    panels = zip((panel.title for panel in plot.panels), drawings, strict=True)
    points = (each for panel in plot.panels for each in _points(panel))
    return PageFigure(
        name=plot.name,
        title=plot.title,
        columns=columns_on_page(plot),
        legend=tuple(
            (page_drawing(svg, f"{plot.name}-entry-{number}"), words)
            for number, (svg, words) in enumerate(legend_svgs(plot))
        ),
        notes=notes(plot),
        panels=tuple(panels),
        points=tuple(points),
    )


def page_drawing(svg: str, name: str) -> str:
    """The drawing in the page's colours, without the XML declaration; name: of its ids, unlike any other's.

    Its styles are attributes: the content security policy of the viewer's pages allows no styles in them.
    """
    drawing = printable(svg[svg.index("<svg") :])
    # Two SVGs in one page share its ids: clip paths and glyphs of one would be used by the other.
    named = _IDENTIFIER.sub(rf"\1{name}-", drawing)
    coloured = _COLOUR.sub(lambda match: COLOURS[match[0]], named)
    return _TAG.sub(_with_attributes, _SHEET.sub("", coloured)).replace("<svg", ROUNDED, 1)


def _with_attributes(tag: re.Match[str]) -> str:
    """The tag with the declarations of its style as attributes of their own."""
    return _STYLE.sub(lambda style: " ".join(_attributes(style[1])), tag[0])


def _attributes(style: str) -> Iterator[str]:
    for declaration in filter(str.strip, style.split(";")):
        name, _, value = declaration.partition(":")
        yield f'{name.strip()}="{value.strip()}"'


def _points(panel: Panel) -> Iterator[RunsOfPoints]:
    """The runs of each point; of points with the same runs once."""
    labels: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for series in panel.series:
        for label, point in zip(panel.labels, series.points, strict=True):
            if point and point.runs:
                labels.setdefault((series.system, point.runs), []).append(label)
    for (system, runs), places in labels.items():
        where = "" if len(places) == len(panel.labels) > 1 else f", {', '.join(places)}"
        yield RunsOfPoints(title=f"{one_line(panel.title)}: {system}{where}", runs=runs)
