"""Reports of experiments by the papers' protocols, and of runs compared with the published results."""

from collections.abc import Sequence

from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.common.humanize import count
from cotrail.engines.optional_packages import installed_with
from cotrail.evaluation.experiments.ircot import tables
from cotrail.evaluation.experiments.ircot.cells import CellResult
from cotrail.evaluation.experiments.ircot.experiment import IRCoTExperiment
from cotrail.evaluation.experiments.ircot.figures import build_charts
from cotrail.evaluation.experiments.ircot.measures import is_answered
from cotrail.evaluation.experiments.protocols import AnyExperiment, complete_plan, experiment_of
from cotrail.evaluation.experiments.report_tables import ReportTable
from cotrail.evaluation.experiments.rethinking import tables as rethinking_tables
from cotrail.evaluation.experiments.rethinking.experiment import RethinkingExperiment
from cotrail.evaluation.experiments.rethinking.published import SOURCE
from cotrail.evaluation.experiments.rethinking.runs import RethinkingRun
from cotrail.evaluation.experiments.searchain import published
from cotrail.evaluation.experiments.searchain import tables as searchain_tables
from cotrail.evaluation.experiments.searchain.experiment import SearChainExperiment
from cotrail.evaluation.experiments.searchain.runs import SearChainRun
from cotrail.models.queries.experiments import ExperimentRecord, read_experiment
from cotrail.services.reports.configuration import flat, local
from cotrail.services.reports.experiment_report import NO_RESULTS, ExperimentReport
from cotrail.services.reports.ircot_results import read_results
from cotrail.services.reports.reported_runs import read_reported_runs
from cotrail.services.reports.rethinking_results import read_trials
from cotrail.services.reports.searchain_results import read_searches


def read_report(connection: Connection, name: str) -> ExperimentReport:
    """The results of an experiment so far."""
    record = read_experiment(connection, name)
    return replace(
        _results(connection, name, experiment_of(record.plan["experiment"])),
        subject=_subject(record),
        runs=read_reported_runs(connection, record.runs),
        plan=tuple(flat(record.plan)),
    )


def _subject(record: ExperimentRecord) -> str:
    told = complete_plan(record.plan)["experiment"]
    models = [each if isinstance(each, str) else each["name"] for each in told["models"]]
    parts = f"protocol {told['protocol']}", f"model {', '.join(models)}", f"questions of {', '.join(told['datasets'])}"
    return f"Experiment: {'; '.join(parts)}. Begun {local(record.created_at)}."


def _results(connection: Connection, name: str, experiment: AnyExperiment) -> ExperimentReport:
    match experiment:
        case IRCoTExperiment():
            return ircot_report(read_results(connection, name))
        case RethinkingExperiment():
            return rethinking_report(read_trials(connection, experiment))
        case SearChainExperiment():
            return searchain_report(read_searches(connection, experiment))


def ircot_report(results: Sequence[CellResult]) -> ExperimentReport:
    """IRCoT's tables and figures; UnavailableError where numpy isn't installed."""
    with installed_with("reports"):
        built, plots = tables.build_tables(results), build_charts(results)
    return ExperimentReport(summary=_ircot_summary(results), tables=built, plots=plots)


def rethinking_report(runs: Sequence[RethinkingRun]) -> ExperimentReport:
    """The tables of Rethinking with Retrieval; its figure has a panel for each run of the basic approach."""
    plot = rethinking_tables.chains_chart([run for run in runs if run.method.is_basic])
    tables = rethinking_tables.build_tables(runs)
    summary = f"{count(len(runs), 'run')}; {_answered([run.is_answered for run in runs])}.{_source(tables)}"
    return ExperimentReport(
        summary=summary if runs else NO_RESULTS,
        tables=tables,
        plots=(plot,) if plot else (),
    )


def searchain_report(runs: Sequence[SearChainRun]) -> ExperimentReport:
    """The tables of Search-in-the-Chain."""
    answered = _answered([run.is_answered for run in runs])
    summary = f"{count(len(runs), 'run')}; {answered}. {searchain_tables.SCORED} {published.SOURCE}"
    return ExperimentReport(
        summary=summary if runs else NO_RESULTS, tables=searchain_tables.build_tables(runs), plots=()
    )


def comparison_report(runs: Sequence[RethinkingRun]) -> ExperimentReport:
    """Any runs of Rethinking with Retrieval and its baselines; the figure has a panel for each with several chains."""
    plot = rethinking_tables.chains_chart(runs)
    tables = rethinking_tables.build_tables(runs)
    return ExperimentReport(
        summary=f"{count(len(runs), 'run')}.{_source(tables)}",
        tables=tables,
        plots=(plot,) if plot else (),
    )


def _source(tables: Sequence[ReportTable]) -> str:
    """Where the published figures are from, if there are any."""
    return f" {SOURCE}" if any(row.published for table in tables for row in table.rows) else ""


def _ircot_summary(results: Sequence[CellResult]) -> str:
    if not results:
        return NO_RESULTS
    searches = sum(result.cell.stage == "search" for result in results)
    return (
        f"{count(searches, 'run')} on the development questions and {len(results) - searches:,} on the test questions; "
        f"{_answered([is_answered(result) for result in results])}. Scores are points out of 100. What is marked as "
        "published is from Trivedi et al., ACL 2023 (aclanthology.org/2023.acl-long.557)."
    )


def _answered(runs: Sequence[bool]) -> str:
    missing = runs.count(False)
    return f"{count(missing, 'run')} with questions that have no answer (yet)" if missing else "all answered"
