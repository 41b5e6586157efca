"""`cotrail experiment`: a paper's protocol from one file."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import tomli_w
import typer
from rich.console import Console
from rich.progress import track
from rich.text import Text
from sqlalchemy import Connection

from cotrail.cli.request_options import Json, argument, option, refuse_elsewhere
from cotrail.cli.terminal.following import describe, display, follow_job
from cotrail.cli.terminal.output import console, heading, in_json, print_json, print_rows, print_tables, titled
from cotrail.cli.terminal.run_text import INCOMPLETE, print_reasons, stuck_line
from cotrail.common.humanize import count
from cotrail.services.operations.operation import is_remote
from cotrail.services.results import experiment_reports, runs
from cotrail.services.results.experiment_reports import ExperimentReport, ReportedExperiment, read_report
from cotrail.services.results.reports.documents import write_report
from cotrail.services.results.reports.run_report import write_run_pages
from cotrail.services.results.reports.sheets import Sheet
from cotrail.services.runs import experiments
from cotrail.services.runs.conducting import Schedule, begin
from cotrail.services.runs.experiments import Conducted, ExperimentProgress, read_experiment_file, read_to_send
from cotrail.services.runs.jobs import Job
from cotrail.services.store import open_store, reading

experiment = typer.Typer(
    name="experiment",
    help="Run a paper's protocol from one file, and report its tables and figures.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

ExperimentName = Annotated[str, argument("experiment.name")]


@experiment.command()
def run(
    file: Annotated[Path, argument("experiment.run.file")],
    *,
    no_reuse: Annotated[bool, option("experiment.run.no-reuse")] = False,
    json: Json = False,
) -> None:
    """Queue the whole protocol and show progress until it is done.

    Everything is checked before anything is queued. Workers carry the runs out; those that depend on others' results,
    as IRCoT's on the test questions do, are queued when these are done. This command may be ended at any time; run
    again, it continues.

    Exits with 4 if questions are blocked or were cancelled.
    """
    screen = console(stderr=json)
    if is_remote():
        raise typer.Exit(_conduct_there(file, screen, reuse=not no_reuse, json=json))
    schedule = Schedule(read_experiment_file(file), file.parent)
    plan = schedule.plan()
    for note in schedule.check():
        screen.print(note, style="yellow", soft_wrap=True)
    with open_store() as engine:
        conductor = begin(engine, schedule, plan, reuse=not no_reuse)
        try:
            with display(screen) as show:
                progress = conductor.conduct(show)
        except KeyboardInterrupt:
            screen.print(f"Queued runs continue. `cotrail experiment run {file}` submits the rest.")
            raise
    raise typer.Exit(_close(schedule.name, progress, json=json))


def _conduct_there(file: Path, screen: Console, *, reuse: bool, json: bool) -> int:
    """Has a server conduct the experiment, and follows it; returns the exit code."""
    job = experiments.conduct_experiment(read_to_send(file, reuse=reuse))
    with display(screen) as show:
        ended = follow_job(job, lambda job: _show_progress(job, show))
    conducted = ended.outcome(Conducted)
    for note in conducted.notes:
        screen.print(note, style="yellow", soft_wrap=True)
    return _close(conducted.experiment, conducted.progress, json=json)


def _show_progress(job: Job, show: Callable[[ExperimentProgress], None]) -> None:
    if job.result is not None:
        show(msgspec.convert(job.result, Conducted).progress)


def _close(name: str, progress: ExperimentProgress, *, json: bool) -> int:
    """Prints the outcome of the experiment and its first table; returns the exit code."""
    stuck = [runs.show_run(run) for run in progress.stuck]
    results = experiment_reports.report_experiment(name)
    if not in_json({"experiment": name, **msgspec.structs.asdict(progress), **_told(results)}, json=json):
        screen = console()
        screen.print(f"{name}: {describe(progress)}.", soft_wrap=True)
        print_report(results.summary, results.sheets[:1], screen)
        if len(results.sheets) > 1:
            screen.print()
            screen.print(f"`cotrail experiment report {name}` has all tables.", style="dim", soft_wrap=True)
        for run in stuck:
            screen.print()
            screen.print(heading(stuck_line(run)))
            print_reasons(screen, run.reasons)
    return INCOMPLETE if progress.stuck else 0


def _told(results: ReportedExperiment) -> dict[str, Any]:
    return {"summary": results.summary, "tables": results.tables}


def print_report(summary: str, tables: Sequence[Sheet], screen: Console) -> None:
    """Prints what is recommended, or else how far it is, and the tables."""
    screen.print(Text(summary), soft_wrap=not screen.is_terminal)
    print_tables(tables, screen)


@experiment.command()
def report(
    name: ExperimentName,
    output: Annotated[Path | None, option("experiment.report.output")] = None,
    *,
    runs: Annotated[bool, option("experiment.report.runs")] = True,
    json: Json = False,
) -> None:
    """Print the paper's tables for an experiment's results next to the published figures, and draw its figures.

    Tables say what isn't done yet and leave it out. In report.html each figure leads to the runs behind it.
    """
    if output is not None:
        refuse_elsewhere("`cotrail experiment report --output`")
    results = experiment_reports.report_experiment(name)
    if json:
        print_json({"experiment": results.experiment, **_told(results)})
    elif output is None:
        print_report(results.summary, results.sheets, console())
    if output is not None:
        _write(results.experiment, output, runs=runs)


def _write(name: str, output: Path, *, runs: bool) -> None:
    """Writes the report's documents."""
    screen = console(stderr=True)
    with reading() as connection:
        results = read_report(connection, name)
        pages = _write_run_pages(connection, results, output, screen) if runs else 0
        files = write_report(name, results, output, runs=runs)
    also = f", and {count(pages, 'page')} in {output / 'runs'}" if pages else ""
    screen.print(f"Written: {', '.join(map(str, files))}{also}", style="dim", soft_wrap=True)


def _write_run_pages(connection: Connection, report: ExperimentReport, directory: Path, screen: Console) -> int:
    """Writes each run's page, with a bar on a terminal; returns how many there are."""
    pages = write_run_pages(connection, report.runs, directory)
    quiet = not screen.is_terminal
    tracked = track(pages, "Pages of runs", len(report.runs), console=screen, transient=True, disable=quiet)
    return sum(1 for _ in tracked)


@experiment.command()
def show(name: ExperimentName = "latest", *, json: Json = False) -> None:
    """Show an experiment's file and its runs."""
    described = experiments.show_experiment(name)
    if in_json(described, json=json):
        return
    screen = console()
    screen.print(heading(described.experiment))
    screen.print(Text(as_toml(described.plan["experiment"])), soft_wrap=True)
    columns = titled("cell", "run", "questions")
    rows = [
        [cell, each.run, ", ".join(f"{number} {status}" for status, number in each.questions.items() if number)]
        for cell, each in described.runs.items()
    ]
    print_rows(screen, columns, rows)


def as_toml(described: dict[str, Any]) -> str:
    """An experiment as the file that `cotrail experiment run` reads."""
    return tomli_w.dumps(_without_none(described))


def _without_none(tree: dict[str, Any]) -> dict[str, Any]:
    """TOML has no null, so keys without a value are left out."""
    return {
        key: _without_none(value) if isinstance(value, dict) else value
        for key, value in tree.items()
        if value is not None
    }
