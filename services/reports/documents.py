"""Documents of an experiment's report: an HTML page that needs no other file, Markdown, and the figures."""

import re
from collections.abc import Sequence
from pathlib import Path

from cotrail.common.printable_text import printable
from cotrail.errors import InputError
from cotrail.evaluation.experiments.charts import Chart
from services.reports.experiment_report import ExperimentReport
from services.reports.figures import svg_of, write_figure
from services.reports.pages import page
from services.reports.sheets import Sheet, as_markdown, sheet


def report_page(name: str, report: ExperimentReport) -> str:
    """The report as one HTML page; raises UnavailableError where it has figures and matplotlib isn't installed."""
    return _page(name, report, [(plot, svg_of(plot)) for plot in report.plots])


def write_report(name: str, report: ExperimentReport, directory: Path) -> tuple[Path, ...]:
    """Writes `report.html`, which needs no other file, `report.md` and the figures; returns the files.

    Raises UnavailableError where matplotlib isn't installed, InputError where the directory can't be written.
    """
    sheets = [sheet(table) for table in report.tables]
    drawn = [(plot, write_figure(plot, directory)) for plot in report.plots]
    figures = [(plot, svg) for plot, (svg, _) in drawn]
    html, text = directory / "report.html", directory / "report.md"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        drawings = [(plot, svg.read_text("utf-8")) for plot, svg in figures]
        html.write_text(_page(name, report, drawings), "utf-8")
        text.write_text(printable(_markdown(name, report.summary, sheets, figures)), "utf-8")
    except OSError as error:
        raise InputError(f"{directory} can't be written ({error.strerror}); choose another directory") from error
    return (html, text, *(path for _, paths in drawn for path in paths))


def _markdown(name: str, summary: str, sheets: Sequence[Sheet], figures: Sequence[tuple[Chart, Path]]) -> str:
    images = [f"## {plot.title}\n\n![{plot.title}]({svg.name})\n" for plot, svg in figures]
    return "\n".join([f"# {name}\n\n{summary}\n", *map(as_markdown, sheets), *images])


def _page(name: str, report: ExperimentReport, drawings: Sequence[tuple[Chart, str]]) -> str:
    """The page of the tables and of figures, which are given as SVG."""
    figures = [(plot, _inlined(svg, plot.name)) for plot, svg in drawings]
    sheets = [sheet(table) for table in report.tables]
    return page("experiment.html", name=name, summary=report.summary, sheets=sheets, figures=figures)


def _inlined(svg: str, name: str) -> str:
    """A drawing for a page that holds several: without the XML declaration, and with ids of its own."""
    # Two SVGs in one page share its ids: clip paths and glyphs of one would be used by the other.
    drawing = printable(svg[svg.index("<svg") :])
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\1{name}-", drawing)
