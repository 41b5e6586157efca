"""Reports of experiments, and of runs of Rethinking with Retrieval next to what the paper reports."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.common.humanize import moment
from cotrail.common.optional_packages import installed_with
from cotrail.evaluation.experiments.ircot.cells import LAYOUTS, NAMES, printed_means
from cotrail.evaluation.experiments.registry import experiment_of, paper_of
from cotrail.evaluation.experiments.report_tables import Chart, ReportedRun
from cotrail.evaluation.experiments.report_tables import ExperimentReport as ExperimentReport
from cotrail.evaluation.experiments.rethinking.runs import read_run
from cotrail.evaluation.experiments.rethinking.tables import comparison
from cotrail.models.queries.experiments import ExperimentRecord, read_experiment, resolve_experiment
from cotrail.models.queries.runs import resolve_run
from cotrail.models.queries.traces import read_questions
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.results.reports.documents import report_page
from cotrail.services.results.reports.reported_runs import flat, read_reported_runs
from cotrail.services.results.reports.sheets import Sheet, sheet
from cotrail.services.runs.conducting import read_results, recorded_run
from cotrail.services.runs.labels import find_run
from cotrail.services.runs.scores import scores_of
from cotrail.services.store import reading


def read_report(connection: Connection, name: str) -> ExperimentReport:
    """The results of an experiment so far; UnavailableError where numpy isn't installed."""
    record = read_experiment(connection, name)
    experiment = experiment_of(record.plan["experiment"])
    results = read_results(connection, experiment, record.runs)
    with installed_with("reports"):
        report: ExperimentReport = paper_of(experiment.protocol).reported(results)
    return replace(
        report,
        subject=_subject(record),
        runs=read_reported_runs(connection, record.runs),
        plan=tuple(flat(record.plan)),
    )


def _subject(record: ExperimentRecord) -> str:
    described = record.plan["experiment"]
    models = [each if isinstance(each, str) else each["name"] for each in described["models"]]
    parts = (
        f"protocol {described['protocol']}",
        f"model {', '.join(models)}",
        f"questions of {', '.join(described['datasets'])}",
    )
    return f"Experiment: {'; '.join(parts)}. Begun {moment(record.created_at)}."


class ReportedExperiment(Struct, frozen=True, kw_only=True):
    """An experiment's results next to the published figures; see `ExperimentReport`.

    tables: their values; sheets: the same as texts to lay out.
    """

    experiment: str
    subject: str
    summary: str
    tables: tuple[dict[str, Any], ...]
    sheets: tuple[Sheet, ...]
    plots: tuple[Chart, ...]
    runs: tuple[ReportedRun, ...]
    plan: tuple[tuple[str, str], ...]


@operation("experiments.report", "GET", "/experiments/{experiment}/report", Scope.READ)
def report_experiment(experiment: str) -> ReportedExperiment:
    """Report an experiment's results so far, next to the published figures."""
    with reading() as connection:
        name = resolve_experiment(connection, experiment)
        found = read_report(connection, name)
    return ReportedExperiment(
        experiment=name,
        subject=found.subject,
        summary=found.summary,
        tables=msgspec.to_builtins(found.tables),
        sheets=tuple(map(sheet, found.tables)),
        plots=found.plots,
        runs=found.runs,
        plan=found.plan,
    )


# Runs of Rethinking with Retrieval and its baselines next to what the paper reports.


def compare(connection: Connection, ids: Iterable[str]) -> ExperimentReport:
    """The tables and the figure for these runs; InputError where one is of none of the paper's tasks."""
    behind = {run_id: run_id for run_id in ids}
    compared = comparison([read_run(recorded_run(connection, run_id)) for run_id in behind])
    return replace(compared, runs=read_reported_runs(connection, behind))


TITLE = "Rethinking with retrieval"


class ComparedRuns(Struct, frozen=True, kw_only=True):
    """The tables of these runs: their values, and the same as texts to lay out.

    summary: what the numbers are; figure: accuracy by number of chains, where a run has several.
    """

    tables: tuple[dict[str, Any], ...]
    sheets: tuple[Sheet, ...]
    summary: str
    figure: Chart | None


@operation("rethinking.show", "GET", "/rethinking", Scope.READ)
def show_rethinking(runs: Sequence[str]) -> ComparedRuns:
    """Compare runs of `rethinking` and its baselines with one another and with what the paper reports."""
    with reading() as connection:
        report = _rethinking(connection, runs)
    return ComparedRuns(
        tables=msgspec.to_builtins(report.tables),
        sheets=tuple(map(sheet, report.tables)),
        summary=report.summary,
        figure=next(iter(report.plots), None),
    )


@operation(
    "rethinking.page", "GET", "/rethinking/page", Scope.READ, answers="stream", media_type="text/html; charset=utf-8"
)
def rethinking_page(runs: Sequence[str]) -> Iterator[bytes]:
    """Give the same as one HTML page, with the figure and each run's configuration."""
    with reading() as connection:
        report = _rethinking(connection, runs)
    yield report_page(TITLE, report).encode()


def _rethinking(connection: Connection, runs: Sequence[str]) -> ExperimentReport:
    return compare(connection, [resolve_run(connection, run) for run in runs])


# The run of the bundled sample that `cotrail demo` shows.


class SampleAnswer(Struct, frozen=True, kw_only=True):
    """A question's answer, or its status where it has none, next to the gold one."""

    answer: str
    gold: str
    right: bool


class PublishedModel(Struct, frozen=True, kw_only=True):
    """A model of IRCoT's paper: its size in billions of parameters, and its answer F1 on HotpotQA."""

    name: str
    parameters: float
    answer_f1: float


def read_answers(connection: Connection, run: str) -> list[SampleAnswer]:
    """The answers of the run's questions, in their order."""
    record = find_run(connection, run)
    return [
        SampleAnswer(
            answer=question.answer or question.status,
            gold=question.answers[0],
            right=scores_of(record, question)["answer_em"] == 1,
        )
        for question in read_questions(connection, record.id)
    ]


def published_models() -> list[PublishedModel]:
    """The models of IRCoT's paper (table 4), with the reader of which it reports the main results."""
    rows = {
        model: row
        for row in LAYOUTS["readers"].rows
        if (row.values["system"], row.values["reader"]) == ("ircot", NAMES.readers[model := str(row.values["model"])])
    }
    return [
        PublishedModel(name=model, parameters=NAMES.parameters[model], answer_f1=printed_means(row)["hotpotqa"])
        for model, row in rows.items()
    ]
