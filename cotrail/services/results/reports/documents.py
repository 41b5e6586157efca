"""Documents of an experiment's report: an HTML page that needs no other file, Markdown, figures, pages of runs."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from cotrail import __version__
from cotrail.common.humanize import moment
from cotrail.common.printable_text import one_line, printable
from cotrail.errors import InputError
from cotrail.evaluation.experiments.report_tables import Chart, ExperimentReport, Panel, ReportedRun
from cotrail.services.results.reports.figures import (
    GRID,
    INK,
    PAPER,
    SOFT,
    columns_on_page,
    legend_svgs,
    notes,
    panel_svgs,
    write_figure,
)
from cotrail.services.results.reports.pages import page
from cotrail.services.results.reports.sheets import Sheet, as_markdown, sheet

# Figures of experiments as parts of a page: in the page's colours, with ids of their own, and the runs behind them.

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


def write_report(name: str, report: ExperimentReport, directory: Path, *, runs: bool = False) -> tuple[Path, ...]:
    """Writes `report.html`, `report.md` and the figures; returns the files.

    runs: whether the pages of the runs are there (`write_run_pages`), to which `report.html` links then.

    Raises UnavailableError where matplotlib isn't installed, InputError where the directory can't be written.
    """
    sheets = [sheet(table) for table in report.tables]
    svg_files = [(plot, write_figure(plot, directory)) for plot in report.plots]
    figures = [(plot, svg) for plot, (svg, _) in svg_files]
    html, text = directory / "report.html", directory / "report.md"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        html.write_text(report_page(name, report, with_pages=runs), "utf-8")
        text.write_text(printable(_markdown(name, report, sheets, figures)), "utf-8")
    except OSError as error:
        raise InputError(f"{directory} can't be written ({error.strerror}); choose another directory") from error
    return (html, text, *(path for _, paths in svg_files for path in paths))


def _markdown(
    name: str, report: ExperimentReport, sheets: Sequence[Sheet], figures: Sequence[tuple[Chart, Path]]
) -> str:
    images = [f"## {plot.title}\n\n![{plot.title}]({svg.name})\n" for plot, svg in figures]
    return "\n".join([f"# {name}\n\n{report.summary}\n", *map(as_markdown, sheets), *images])


def report_page(name: str, report: ExperimentReport, *, with_pages: bool = False) -> str:
    """The report as one HTML page; with_pages: whether the runs have pages of their own.

    Raises UnavailableError where it has figures and matplotlib isn't installed.
    """
    targets = {run.id: run.page if with_pages else f"#{run.anchor}" for run in report.runs}
    return page(
        "experiment.html",
        name=name,
        report=report,
        sheets=[sheet(table) for table in report.tables],
        figures=[page_figure(plot) for plot in report.plots],
        links=links_of(report.runs, targets),
        with_pages=with_pages,
        now=moment(datetime.now()),
        version=__version__,
    )


def links_of(runs: Iterable[ReportedRun], targets: Mapping[str, str]) -> Mapping[str, str]:
    """Where the names and ids of runs lead; targets: by their ids."""
    return {name: targets[run.id] for run in runs for name in (run.id, run.name)}
