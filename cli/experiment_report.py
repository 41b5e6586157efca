"""An experiment's results for people and programs: its tables, its figures, and a page of both."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from cli.experiment_tables import Sheet, as_markdown, print_tables, sheet
from cli.figures import write_figure
from cli.output import count
from cli.pages import page
from cotrail.errors import InputError, UnavailableError
from cotrail.experiments.cells import CellResult
from cotrail.experiments.measures import is_answered
from cotrail.experiments.plots import Plot, build_plots
from cotrail.experiments.table import Table
from cotrail.experiments.tables import build_tables
from cotrail.printable import printable

NO_RESULTS = "No run of the experiment has results yet."


def report_json(results: Sequence[CellResult]) -> dict[str, Any]:
    """The tables for programs: the numbers that are printed, unrounded, scores from 0 to 1."""
    return {"tables": tables_of(results)}


def print_report(results: Sequence[CellResult], screen: Console) -> None:
    """Prints the tables."""
    if not results:
        screen.print(NO_RESULTS)
    print_tables(tables_of(results), screen)


def write_report(name: str, results: Sequence[CellResult], directory: Path) -> tuple[Path, ...]:
    """Writes `report.html`, which needs no other file, `report.md` and the figures; returns the files.

    Raises UnavailableError where matplotlib isn't installed, InputError where the directory can't be written.
    """
    sheets = [sheet(table) for table in tables_of(results)]
    drawn = [(plot, write_figure(plot, directory)) for plot in build_plots(results)]
    figures = [(plot, svg) for plot, (svg, _) in drawn]
    html, text = directory / "report.html", directory / "report.md"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        drawings = [(plot, svg.read_text("utf-8")) for plot, svg in figures]
        html.write_text(page_of(name, _summary(results), sheets, drawings), "utf-8")
        text.write_text(printable(_markdown(name, _summary(results), sheets, figures)), "utf-8")
    except OSError as error:
        raise InputError(f"{directory} can't be written ({error.strerror}); choose another directory") from error
    return (html, text, *(path for _, paths in drawn for path in paths))


def _summary(results: Sequence[CellResult]) -> str:
    if not results:
        return NO_RESULTS
    tried = sum(result.cell.stage == "search" for result in results)
    missing = sum(not is_answered(result) for result in results)
    answered = f"{count(missing, 'run')} with questions that have no answer (yet)" if missing else "all answered"
    return (
        f"{count(tried, 'run')} on the development questions and {len(results) - tried:,} on the test questions; "
        f"{answered}. Scores are points out of 100. What is marked as published is from Trivedi et al., ACL 2023 "
        "(aclanthology.org/2023.acl-long.557)."
    )


def _markdown(name: str, summary: str, sheets: Sequence[Sheet], figures: Sequence[tuple[Plot, Path]]) -> str:
    images = [f"## {plot.title}\n\n![{plot.title}]({svg.name})\n" for plot, svg in figures]
    return "\n".join([f"# {name}\n\n{summary}\n", *map(as_markdown, sheets), *images])


def page_of(name: str, summary: str, sheets: Sequence[Sheet], drawings: Sequence[tuple[Plot, str]]) -> str:
    """A page of tables and figures, which are given as SVG, that needs no other file."""
    figures = [(plot, _inlined(svg, plot.name)) for plot, svg in drawings]
    return page("experiment.html", name=name, summary=summary, sheets=sheets, figures=figures)


def _inlined(svg: str, name: str) -> str:
    """A file's drawing for a page that holds several: without what stands before it, with ids of its own."""
    drawing = printable(svg[svg.index("<svg") :])
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\1{name}-", drawing)


def tables_of(results: Sequence[CellResult]) -> tuple[Table, ...]:
    """The experiment's tables; UnavailableError where numpy isn't installed."""
    try:
        return build_tables(results)
    except ModuleNotFoundError as error:
        raise UnavailableError(
            f"the tables need {error.name}; install it with: pip install 'cotrail[reports]'"
        ) from error
