"""Search-in-the-Chain: its experiments, and their results beside the published ones."""

from collections.abc import Sequence

from cotrail.common.humanize import count
from cotrail.evaluation.experiments.paper import GoldAsPublished, Paper, RunKeys, at_once
from cotrail.evaluation.experiments.report_tables import NO_RESULTS, ExperimentReport, completeness
from cotrail.evaluation.experiments.searchain.experiment import (
    SETTINGS,
    SYSTEM,
    SearChainExperiment,
    SearChainTrial,
    trials,
)
from cotrail.evaluation.experiments.searchain.published import SOURCE
from cotrail.evaluation.experiments.searchain.runs import SearChainRun, read_run
from cotrail.evaluation.experiments.searchain.tables import SCORES_NOTE, build_tables


def request(experiment: SearChainExperiment, trial: SearChainTrial) -> RunKeys:
    """The request of a run."""
    files = experiment.datasets[trial.dataset]
    return experiment.request(
        SYSTEM,
        files.settings,
        SETTINGS[trial.variation],
        dataset=files.format or trial.dataset,
        questions=files.questions,
        corpus=files.corpus,
        model=trial.model,
        temperature=experiment.temperature,
        extractor=experiment.extractor,
        duplicate_rater=experiment.duplicate_rater,
        embedder=experiment.embedder,
    )


def report(runs: Sequence[SearChainRun]) -> ExperimentReport:
    """The tables of Search-in-the-Chain."""
    summary = f"{count(len(runs), 'run')}; {completeness([run.is_answered for run in runs])}. {SCORES_NOTE} {SOURCE}"
    return ExperimentReport(summary=summary if runs else NO_RESULTS, tables=build_tables(runs))


PAPER = Paper(
    file=SearChainExperiment,
    stages=lambda experiment: at_once(trials(experiment)),
    request=request,
    read=read_run,
    report=report,
    inputs=GoldAsPublished,
    pinned=("embedders", "pins"),
)
