"""Rethinking with Retrieval: its experiments, and their results beside the published ones."""

from collections.abc import Sequence

from msgspec.structs import replace

from cotrail.data.datasets.registry import TASK_OF
from cotrail.evaluation.experiments.paper import GoldAsPublished, Paper, RunKeys, at_once
from cotrail.evaluation.experiments.report_tables import NO_RESULTS, ExperimentReport, completeness
from cotrail.evaluation.experiments.rethinking.experiment import RethinkingExperiment, RethinkingTrial, trials
from cotrail.evaluation.experiments.rethinking.runs import RethinkingRun, read_run
from cotrail.evaluation.experiments.rethinking.tables import report_of
from cotrail.systems.registry import find_system


def request(experiment: RethinkingExperiment, trial: RethinkingTrial) -> RunKeys:
    """The request of a run."""
    files = experiment.datasets[trial.dataset]
    format_, spec = files.format or trial.dataset, find_system(trial.method)
    takes_chains = spec.needs(spec.settings()).samples and "chains" not in trial.settings
    return experiment.request(
        trial.method,
        trial.settings,
        dataset=f"{format_}-facts" if trial.has_facts else format_,
        questions=files.questions,
        demonstrations=files.demonstrations,
        corpus=files.evidence if trial.has_evidence else files.corpus,
        task=None if format_ in TASK_OF else files.task,
        model=trial.model,
        embedder=experiment.embedder,
        entailer=experiment.entailer,
        inferrer=experiment.inferrer if trial.infers_elsewhere else None,
        chains=experiment.chains if takes_chains else None,
    )


def report(runs: Sequence[RethinkingRun]) -> ExperimentReport:
    """The tables of an experiment; the figure has a panel for each run of the basic approach."""
    if not runs:
        return ExperimentReport(summary=NO_RESULTS, tables=())
    basic = [run for run in runs if run.method.is_basic]
    return report_of(runs, basic, f"; {completeness([run.is_answered for run in runs])}")


PAPER = Paper(
    file=RethinkingExperiment,
    stages=lambda experiment: at_once(trials(experiment)),
    request=request,
    read=lambda trial, run: replace(read_run(run), id=trial.name),
    report=report,
    inputs=GoldAsPublished,
    pinned=("embedders", "entailers", "knowledge"),
)
