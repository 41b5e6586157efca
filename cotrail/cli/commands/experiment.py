"""`cotrail experiment`: a paper's protocol from one file; `rethink`, `rethinking`: predictions from recorded chains."""

from collections.abc import Sequence
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
from cotrail.cli.terminal import output as terminal
from cotrail.cli.terminal.following import describe, display, follow_job
from cotrail.cli.terminal.run_text import INCOMPLETE, print_reasons, stuck_line
from cotrail.common.humanize import count, number, percent
from cotrail.common.printable_text import cut
from cotrail.errors import InputError
from cotrail.faithfulness.tasks import Task
from cotrail.faithfulness.weighing import Function, Thresholds
from cotrail.services.operations.operation import is_remote
from cotrail.services.results import experiment_reports, recorded_chains, runs
from cotrail.services.results.experiment_reports import ExperimentReport, ReportedExperiment, read_report
from cotrail.services.results.recorded_chains import InferenceOptions, Rethought
from cotrail.services.results.reports.documents import write_report
from cotrail.services.results.reports.figures import svg_of
from cotrail.services.results.reports.run_report import write_run_pages
from cotrail.services.results.reports.sheets import Sheet
from cotrail.services.runs import experiments
from cotrail.services.runs.conducting import Schedule, begin
from cotrail.services.runs.experiments import Conducted, ExperimentProgress, read_experiment_file, read_to_send
from cotrail.services.runs.jobs import Job
from cotrail.services.store import open_store, reading
from cotrail.systems.parts.rules import Rules

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
    screen = terminal.console(stderr=json)
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

        def show_result(job: Job) -> None:
            if job.result is not None:
                show(msgspec.convert(job.result, Conducted).progress)

        ended = follow_job(job, show_result)
    conducted = ended.outcome(Conducted)
    for note in conducted.notes:
        screen.print(note, style="yellow", soft_wrap=True)
    return _close(conducted.experiment, conducted.progress, json=json)


def _close(name: str, progress: ExperimentProgress, *, json: bool) -> int:
    """Prints the outcome of the experiment and its first table; returns the exit code."""
    stuck = [runs.show_run(run) for run in progress.stuck]
    results = experiment_reports.report_experiment(name)
    if not terminal.in_json({"experiment": name, **msgspec.structs.asdict(progress), **_told(results)}, json=json):
        screen = terminal.console()
        screen.print(f"{name}: {describe(progress)}.", soft_wrap=True)
        print_report(results.summary, results.sheets[:1], screen)
        if len(results.sheets) > 1:
            screen.print()
            screen.print(f"`cotrail experiment report {name}` has all tables.", style="dim", soft_wrap=True)
        for run in stuck:
            screen.print()
            screen.print(terminal.heading(stuck_line(run)))
            print_reasons(screen, run.reasons)
    return INCOMPLETE if progress.stuck else 0


def _told(results: ReportedExperiment) -> dict[str, Any]:
    return {"summary": results.summary, "tables": results.tables}


def print_report(summary: str, tables: Sequence[Sheet], screen: Console) -> None:
    """Prints what is recommended, or else how far it is, and the tables."""
    screen.print(Text(summary), soft_wrap=not screen.is_terminal)
    terminal.print_tables(tables, screen)


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
        terminal.print_json({"experiment": results.experiment, **_told(results)})
    elif output is None:
        print_report(results.summary, results.sheets, terminal.console())
    if output is not None:
        _write(results.experiment, output, runs=runs)


def _write(name: str, output: Path, *, runs: bool) -> None:
    """Writes the report's documents."""
    screen = terminal.console(stderr=True)
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
    if terminal.in_json(described, json=json):
        return
    screen = terminal.console()
    screen.print(terminal.heading(described.experiment))
    screen.print(Text(as_toml(described.plan["experiment"])), soft_wrap=True)
    columns = terminal.titled("cell", "run", "questions")
    rows = [
        [cell, each.run, ", ".join(f"{number} {status}" for status, number in each.questions.items() if number)]
        for cell, each in described.runs.items()
    ]
    terminal.print_rows(screen, columns, rows)


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


QUESTION_CHARACTERS = 48
"""The most characters shown of a question."""


def rethink(
    file: Annotated[Path, argument("rethink.file")],
    *,
    task: Annotated[Task, option("rethink.task")] = "commonsense",
    chains: Annotated[int | None, option("rethink.chains")] = None,
    voting: Annotated[bool, option("rethink.voting")] = True,
    rules: Annotated[Rules, option("rethink.rules")] = "paper",
    function: Annotated[Function | None, option("rethink.function")] = None,
    similarity_threshold: Annotated[float, option("rethink.similarity-threshold")] = Thresholds().similarity,
    entailment_threshold: Annotated[float, option("rethink.entailment-threshold")] = Thresholds().entailment,
    contradiction_threshold: Annotated[float, option("rethink.contradiction-threshold")] = Thresholds().contradiction,
    json: Json = False,
) -> None:
    """Infer final predictions from recorded chains and their scores, without a model.

    This is the faithful inference of Rethinking with Retrieval; docs/recorded-chains.md describes the file.
    """
    thresholds = Thresholds(
        similarity=similarity_threshold, entailment=entailment_threshold, contradiction=contradiction_threshold
    )
    options = InferenceOptions(
        task=task, chains=chains, voting=voting, rules=rules, function=function, thresholds=thresholds
    )
    rethought = recorded_chains.rethink(file, options)
    if json:
        for each in rethought:
            terminal.print_json(each)
    else:
        screen = terminal.console()
        terminal.print_rows(screen, COLUMNS, [_row(each) for each in rethought])
        screen.print(_summary(rethought, chains))


COLUMNS = terminal.titled("question", "prediction", "weight", "chains", "gold", "", right=("weight", "chains"))


def _row(each: Rethought) -> list[str]:
    best = each.weighing.predictions[0] if each.weighing.predictions else None
    return [
        cut(each.question or each.id, QUESTION_CHARACTERS),
        each.prediction or "-",
        number(best.weight if best else None),
        f"{len(best.chains) if best else 0} of {len(each.weighing.chains)}",
        " | ".join(each.answers) or "-",
        "" if each.right is None else "right" if each.right else "wrong",
    ]


def _summary(rethought: Sequence[Rethought], chains: int | None) -> str:
    verdicts = [each.right for each in rethought if each.right is not None]
    parts = [count(len(rethought), "question")]
    if verdicts:
        share = sum(verdicts) / len(verdicts)
        parts.append(
            f"accuracy {percent(share)}: {sum(verdicts)} of {count(len(verdicts), 'question')} with a gold answer"
        )
    if undecided := sum(not each.prediction for each in rethought):
        parts.append(f"{undecided:,} without a prediction, as no chain states one")
    if chains and (fewer := sum(len(each.weighing.chains) < chains for each in rethought)):
        parts.append(f"{fewer:,} with fewer than {count(chains, 'chain')}")
    return "; ".join(parts)


def rethinking(
    runs: Annotated[list[str], argument("rethinking.runs")],
    *,
    html: Annotated[Path | None, option("rethinking.html")] = None,
    svg: Annotated[Path | None, option("rethinking.svg")] = None,
    json: Json = False,
) -> None:
    """Compare runs of `rethinking` and its baselines with one another and with what the paper reports.

    Accuracy with fewer chains is computed from the stored ones, without a model. A question without an answer
    counts as wrong.

    Example: `cotrail rethinking rethinking-20250301-4be0c1 self-consistency-20250301-77a2d0 --html report.html`
    """
    compared = experiment_reports.show_rethinking(runs)
    contents = {}
    if svg:
        if compared.figure is None:
            raise InputError("there is no figure, since no run has several chains; leave --svg out or name such a run")
        contents[svg] = svg_of(compared.figure)
    if html:
        contents[html] = b"".join(experiment_reports.rethinking_page(runs)).decode()
    for path, content in contents.items():
        terminal.write_text(path, content, "choose another path")
    if terminal.in_json({"tables": compared.tables}, json=json):
        return
    screen = terminal.console()
    terminal.print_tables(compared.sheets, screen)
    screen.print()
    screen.print(compared.summary, style="dim")
    for path in contents:
        screen.print(f"Wrote {path}.", soft_wrap=True)
