"""Means and shares over an experiment's test runs (IRCoT, section 4.1)."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from cotrail.evaluation.experiments.ircot.cells import CellResult, Goal, Line
from cotrail.evaluation.experiments.report_tables import Mean, Share
from cotrail.evaluation.metrics.bootstrap import mean_and_deviation

CellResults = Sequence[CellResult]
"""Results of several runs; of one line, there is one per demonstration set."""

METRICS: dict[Goal, str] = {"retrieval": "paragraph_recall", "qa": "answer_f1"}
"""The metric that the paper reports for each goal, a field of `QuestionScores`."""


def runs_by_line(results: CellResults) -> dict[Line, tuple[CellResult, ...]]:
    """Group the runs on test questions by line, in the order of the results."""
    lines: dict[Line, list[CellResult]] = {}
    for result in results:
        if result.cell.stage == "test":
            lines.setdefault(result.cell.line, []).append(result)
    return {line: tuple(runs) for line, runs in lines.items()}


def is_answered(result: CellResult) -> bool:
    """Return whether every question of a run has an answer; failed and open ones have none."""
    return result.finished == len(result.scores)


def mean_score(runs: CellResults, metric: str, kind: str | None = None) -> Mean | None:
    """Mean of a metric of `QuestionScores` over all questions or one kind; None where no question has it."""
    means = [fmean(scores) for run in runs if (scores := list(_scores(run, metric, kind).values()))]
    if not means:
        return None
    spread = mean_and_deviation(means)
    answered = all(map(is_answered, runs))
    return Mean(mean=spread.mean, deviation=spread.deviation, sets=len(means), answered=answered)


def question_means(runs: CellResults, metric: str) -> dict[str, float]:
    """Mean of each question over the demonstration sets."""
    by_question: dict[str, list[float]] = {}
    for run in runs:
        for question, score in _scores(run, metric).items():
            by_question.setdefault(question, []).append(score)
    return {question: fmean(scores) for question, scores in by_question.items()}


def annotated(runs: CellResults) -> Share | None:
    """Share of the annotated chains with an untrue sentence (figure 7); None where none is annotated."""
    marks = [untrue for run in runs for untrue in run.factual_errors.values()]
    return Share(count=sum(marks), of=len(marks)) if marks else None


def _scores(run: CellResult, metric: str, kind: str | None = None) -> Mapping[str, float]:
    """The questions of that kind that have the metric."""
    found = {
        question: getattr(scores, metric)
        for question, scores in run.scores.items()
        if kind is None or kind in run.kinds.get(question, {}).values()
    }
    return {question: score for question, score in found.items() if score is not None}
