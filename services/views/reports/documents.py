"""Documents of an experiment's report: an HTML page that needs no other file, Markdown, figures, pages of runs."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from cotrail.common.printable_text import printable
from cotrail.errors import InputError
from cotrail.evaluation.experiments.charts import Chart
from cotrail.evaluation.experiments.experiment_report import ExperimentReport, ReportedRun
from cotrail.services.views.reports.figures import write_figure
from cotrail.services.views.reports.figures_in_pages import page_figure
from cotrail.services.views.reports.pages import page
from cotrail.services.views.reports.sheets import Sheet, as_markdown, sheet


def report_page(name: str, report: ExperimentReport) -> str:
    """The report as one HTML page; raises UnavailableError where it has figures and matplotlib isn't installed."""
    return _page(name, report, with_pages=False)


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
        html.write_text(_page(name, report, with_pages=runs), "utf-8")
        text.write_text(printable(_markdown(name, report, sheets, figures)), "utf-8")
    except OSError as error:
        raise InputError(f"{directory} can't be written ({error.strerror}); choose another directory") from error
    return (html, text, *(path for _, paths in svg_files for path in paths))


def _markdown(
    name: str, report: ExperimentReport, sheets: Sequence[Sheet], figures: Sequence[tuple[Chart, Path]]
) -> str:
    images = [f"## {plot.title}\n\n![{plot.title}]({svg.name})\n" for plot, svg in figures]
    return "\n".join([f"# {name}\n\n{report.summary}\n", *map(as_markdown, sheets), *images])


def _page(name: str, report: ExperimentReport, *, with_pages: bool) -> str:
    """The page of the tables and figures; with_pages: whether the runs have pages."""
    targets = {run.id: run.page if with_pages else f"#{run.anchor}" for run in report.runs}
    return page(
        "experiment.html",
        name=name,
        report=report,
        sheets=[sheet(table) for table in report.tables],
        figures=[page_figure(plot) for plot in report.plots],
        links=links_of(report.runs, targets),
        with_pages=with_pages,
        now=f"{datetime.now():%Y-%m-%d %H:%M}",
        version=version("cotrail"),
    )


def links_of(runs: Iterable[ReportedRun], targets: Mapping[str, str]) -> Mapping[str, str]:
    """Where the names and ids of runs lead; targets: by their ids."""
    return {name: targets[run.id] for run in runs for name in (run.id, run.name)}
