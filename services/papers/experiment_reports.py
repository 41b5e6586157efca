"""Reports of experiments."""

from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.engines.optional_packages import installed_with
from cotrail.evaluation.experiments.experiment_report import NO_RESULTS as NO_RESULTS
from cotrail.evaluation.experiments.experiment_report import ExperimentReport as ExperimentReport
from cotrail.evaluation.experiments.registry import complete_plan, experiment_of, paper_of
from cotrail.models.queries.experiments import ExperimentRecord, read_experiment
from cotrail.services.papers.recorded import read_results
from cotrail.services.views.reports.configuration import flat, local
from cotrail.services.views.reports.reported_runs import read_reported_runs


def read_report(connection: Connection, name: str) -> ExperimentReport:
    """The results of an experiment so far; UnavailableError where numpy isn't installed."""
    record = read_experiment(connection, name)
    experiment = experiment_of(record.plan["experiment"])
    results = read_results(connection, experiment, record.runs)
    with installed_with("reports"):
        report: ExperimentReport = paper_of(experiment.protocol).report(results)
    return replace(
        report,
        subject=_subject(record),
        runs=read_reported_runs(connection, record.runs),
        plan=tuple(flat(record.plan)),
    )


def _subject(record: ExperimentRecord) -> str:
    described = complete_plan(record.plan)["experiment"]
    models = [each if isinstance(each, str) else each["name"] for each in described["models"]]
    parts = (
        f"protocol {described['protocol']}",
        f"model {', '.join(models)}",
        f"questions of {', '.join(described['datasets'])}",
    )
    return f"Experiment: {'; '.join(parts)}. Begun {local(record.created_at)}."
