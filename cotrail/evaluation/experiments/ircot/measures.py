"""Means, differences and shares over an experiment's test runs (IRCoT, section 4.1)."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from cotrail.evaluation.experiments.ircot.cells import CellResult, Goal, Line
from cotrail.evaluation.experiments.report_tables import Mean, Share
from cotrail.evaluation.metrics.bootstrap import PairedDifference, mean_and_deviation, paired_difference

CellResults = Sequence[CellResult]
"""Results of several runs; of one line, there is one per demonstration set."""

METRICS: dict[Goal, str] = {"retrieval": "paragraph_recall", "qa": "answer_f1"}
"""The metric that the paper reports for each goal, by its name."""

COMPARED = (("ircot", "one-step"), ("one-step", "no-retrieval"))
"""Which system is compared with which."""

RESAMPLING_SEED = 0


class SystemComparison(Struct, frozen=True, kw_only=True):
    """Comparison of two lines that differ only in their system, over the questions that both have.

    difference: with its paired bootstrap interval over questions; a question's score is its mean over the sets.
    answered: whether every question of both lines has an answer; those without count 0.
    runs: the names of the runs of both.
    """

    line: Line
    against: str
    metric: str
    questions: int
    difference: PairedDifference
    answered: bool
    runs: tuple[str, ...]


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
    """Mean of a metric over all questions or one kind; None where no question has it."""
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


def comparisons(results: CellResults) -> Iterator[SystemComparison]:
    """Compare each system with the next simpler one, where the experiment has both."""
    lines = runs_by_line(results)
    for line, runs in lines.items():
        for system, against in COMPARED:
            others = lines.get(replace(line, system=against), ())
            if line.system == system and (compared := _compared(line, against, runs, others)):
                yield compared


def annotated(runs: CellResults) -> Share | None:
    """Share of the annotated chains with an untrue sentence (figure 7); None where none is annotated."""
    marks = [untrue for run in runs for untrue in run.factual_errors.values()]
    return Share(count=sum(marks), of=len(marks)) if marks else None


def _compared(line: Line, against: str, runs: CellResults, others: CellResults) -> SystemComparison | None:
    metric = METRICS[line.goal]
    ours, theirs = question_means(runs, metric), question_means(others, metric)
    shared = [question for question in ours if question in theirs]
    if not shared:
        return None
    difference = paired_difference([ours[q] for q in shared], [theirs[q] for q in shared], RESAMPLING_SEED)
    return SystemComparison(
        line=line,
        against=against,
        metric=metric,
        questions=len(shared),
        difference=difference,
        answered=all(map(is_answered, (*runs, *others))),
        runs=tuple(run.cell.name for run in (*runs, *others)),
    )


def _scores(run: CellResult, metric: str, kind: str | None = None) -> Mapping[str, float]:
    """The questions of that kind that have the metric."""
    found = {
        question: scores[metric]
        for question, scores in run.scores.items()
        if kind is None or kind in run.kinds.get(question, {}).values()
    }
    return {question: score for question, score in found.items() if score is not None}
