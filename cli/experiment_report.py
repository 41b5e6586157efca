"""An experiment's results for people and programs: its tables, its figures, and a page of both."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from rich.console import Console

from cli.experiment_tables import Sheet, as_markdown, print_tables, sheet
from cli.figures import write_figure
from cli.pages import page
from cotrail.common.printable_text import printable
from cotrail.errors import InputError
from cotrail.evaluation.experiments.charts import Chart
from cotrail.evaluation.experiments.report_tables import ReportTable

NO_RESULTS = "No run of the experiment has results yet."


class Report(Struct, frozen=True, kw_only=True):
    """What came out of an experiment.

    summary: how far it is, what the numbers are, and whose the published ones are.
    """

    summary: str
    tables: tuple[ReportTable, ...]
    plots: tuple[Chart, ...]


def report_json(report: Report) -> dict[str, Any]:
    """The tables for programs: the numbers that are printed, unrounded, scores from 0 to 1."""
    return {"tables": report.tables}


def print_report(report: Report, screen: Console) -> None:
    """Prints the tables."""
    if not report.tables:
        screen.print(NO_RESULTS)
    print_tables(report.tables, screen)


def write_report(name: str, report: Report, directory: Path) -> tuple[Path, ...]:
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
        html.write_text(page_of(name, report.summary, sheets, drawings), "utf-8")
        text.write_text(printable(_markdown(name, report.summary, sheets, figures)), "utf-8")
    except OSError as error:
        raise InputError(f"{directory} can't be written ({error.strerror}); choose another directory") from error
    return (html, text, *(path for _, paths in drawn for path in paths))


def _markdown(name: str, summary: str, sheets: Sequence[Sheet], figures: Sequence[tuple[Chart, Path]]) -> str:
    images = [f"## {plot.title}\n\n![{plot.title}]({svg.name})\n" for plot, svg in figures]
    return "\n".join([f"# {name}\n\n{summary}\n", *map(as_markdown, sheets), *images])


def page_of(name: str, summary: str, sheets: Sequence[Sheet], drawings: Sequence[tuple[Chart, str]]) -> str:
    """A page of tables and figures, which are given as SVG, that needs no other file."""
    figures = [(plot, _inlined(svg, plot.name)) for plot, svg in drawings]
    return page("experiment.html", name=name, summary=summary, sheets=sheets, figures=figures)


def _inlined(svg: str, name: str) -> str:
    """A file's drawing for a page that holds several: without what stands before it, with ids of its own."""
    drawing = printable(svg[svg.index("<svg") :])
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\1{name}-", drawing)
