"""`cotrail rethinking`: runs of Rethinking with Retrieval and its baselines beside what the paper reports."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from msgspec.structs import replace
from sqlalchemy import Connection

from cli.experiment_report import NO_RESULTS, Report, page_of
from cli.experiment_results import cost_of
from cli.experiment_tables import print_tables, sheet
from cli.figures import svg_of
from cli.output import Json, console, count, print_json
from cli.store import reading
from cotrail.errors import InputError
from cotrail.evaluation.experiments.rethinking.experiment import RethinkingExperiment
from cotrail.evaluation.experiments.rethinking.protocol import trials
from cotrail.evaluation.experiments.rethinking.published import SOURCE
from cotrail.evaluation.experiments.rethinking.runs import Answered, RethinkingRun, method_of
from cotrail.evaluation.experiments.rethinking.tables import build_tables, chains_chart
from cotrail.faithfulness.tasks import TASK_OF, Task
from models.queries.experiments import read_experiment
from models.queries.progress import RunRecord, read_progress, read_run, resolve_run
from models.queries.traces import TracedQuestion, read_questions

TITLE = "Rethinking with retrieval"


def rethinking(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="Runs' ids, the beginnings of them, or `latest`.", show_default=False),
    ],
    *,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PATH", help="Write the tables and the figure as a page.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="PATH", help="Write the figure: accuracy by number of chains.")
    ] = None,
    json: Json = False,
) -> None:
    """Compare runs of `rethinking` and its baselines with one another and with what the paper reports.

    Accuracy with fewer chains is worked out from those that are stored; no model is asked. A question without an answer
    counts as wrong.

    Example: `cotrail rethinking rethinking-20250301-4be0c1 self-consistency-20250301-77a2d0 --html report.html`
    """
    with reading() as connection:
        ids = dict.fromkeys(resolve_run(connection, run) for run in runs)
        found = [read_rethinking(connection, run_id) for run_id in ids]
    written = write_report(found, html, svg)
    if json:
        print_json({"tables": build_tables(found)})
        return
    screen = console()
    print_tables(build_tables(found), screen)
    screen.print()
    screen.print(SOURCE, style="dim")
    for path in written:
        screen.print(f"Wrote {path}.", soft_wrap=True)


def read_rethinking(connection: Connection, run_id: str) -> RethinkingRun:
    """A run as the tables need it; InputError where it isn't of one of the tasks, or nothing tells what is right."""
    record = read_run(connection, run_id)
    questions = tuple(_answered(each) for each in read_questions(connection, run_id) if each.answers)
    if not questions:
        raise InputError(f"run {run_id}: its questions come without answers, so nothing tells what is right")
    return RethinkingRun(
        id=run_id,
        method=method_of(record.system, record.system_version, record.settings),
        task=_task(record),
        dataset=record.dataset,
        model=record.model_name,
        questions=questions,
        cost=cost_of(read_progress(connection, run_id)),
    )


def read_trials(connection: Connection, experiment: RethinkingExperiment) -> list[RethinkingRun]:
    """The runs of an experiment as they stand, in the order of its tables, each under its name there."""
    found = read_experiment(connection, experiment.name).runs
    names = [trial.name for trial in trials(experiment) if trial.name in found]
    return [replace(read_rethinking(connection, found[name]), id=name) for name in names]


def rethinking_report(runs: Sequence[RethinkingRun]) -> Report:
    """The tables and the figure of an experiment's runs; its panels are those of the basic approach."""
    plot = chains_chart([run for run in runs if run.method.is_basic])
    unanswered = sum(not run.is_answered for run in runs)
    answered = f"{count(unanswered, 'run')} with questions that have no answer (yet)" if unanswered else "all answered"
    return Report(
        summary=f"{count(len(runs), 'run')}; {answered}. {SOURCE}" if runs else NO_RESULTS,
        tables=build_tables(runs),
        plots=(plot,) if plot else (),
    )


def write_report(runs: Sequence[RethinkingRun], html: Path | None, svg: Path | None) -> list[Path]:
    """Writes the files that are asked for; returns them."""
    plot = chains_chart(runs) if html or svg else None
    drawn = svg_of(plot) if plot else ""
    contents = {}
    if svg:
        if not drawn:
            raise InputError("there is no figure, since no run has several chains; leave --svg out or name such a run")
        contents[svg] = drawn
    if html:
        summary = f"{count(len(runs), 'run')}. {SOURCE}"
        sheets = [sheet(table) for table in build_tables(runs)]
        contents[html] = page_of(TITLE, summary, sheets, [(plot, drawn)] if plot else [])
    for path, content in contents.items():
        _write(path, content)
    return list(contents)


def _write(path: Path, content: str) -> None:
    try:
        path.write_text(content, "utf-8")
    except OSError as error:
        raise InputError(f"{path} can't be written ({error.strerror}); choose another path") from error


def _answered(question: TracedQuestion) -> Answered:
    return Answered(key=question.key, answers=question.answers, answer=question.answer, weighing=question.weighing)


def _task(record: RunRecord) -> Task:
    """The task: the dataset's, or of one's own questions the one that the system was told."""
    if record.dataset in TASK_OF:
        return TASK_OF[record.dataset]
    try:
        task: Task = msgspec.convert(record.settings.get("task"), Task)
    except msgspec.ValidationError as error:
        raise InputError(
            f"run {record.id} is on {record.dataset}, which is none of {', '.join(TASK_OF)}, and its settings name no "
            "task; name other runs"
        ) from error
    return task
