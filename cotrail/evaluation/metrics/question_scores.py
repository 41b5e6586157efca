"""Scores of a question by every metric, and their means over a run and over its kinds of questions."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from statistics import fmean

from msgspec import Struct

from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval, confidence_interval
from cotrail.evaluation.metrics.metric import Metric, ScoredQuestion
from cotrail.evaluation.metrics.registry import METRICS
from cotrail.evaluation.metrics.scores import QuestionScores

CAVEAT = (
    "EM, F1, precision and recall are means over the questions that publish what they need; a question without an "
    "answer counts 0 for its answer, and for its paragraphs with what it has collected. The 95 % confidence intervals "
    "are over questions: Wilson's where each scores 0 or 1, Student's t otherwise, and none where all have the same "
    "other score."
)


Interval = Callable[[Metric, Sequence[float]], ConfidenceInterval | None]


Columns = Mapping[str, Sequence[float | None]]


class MeanScores(Struct, frozen=True, kw_only=True):
    """Mean of each metric over the questions that have it, with its confidence interval; None where there is none."""

    questions: int
    metrics: dict[str, float | None]
    intervals: dict[str, ConfidenceInterval | None]


class KindedScores(Struct, frozen=True, kw_only=True):
    """Scores of a question of these kinds, by name."""

    kinds: Mapping[str, str]
    scores: QuestionScores


def question_scores(question: ScoredQuestion) -> QuestionScores:
    """Score a question."""
    return {name: metric.value(question) for name, metric in METRICS.items()}


def usual_interval(metric: Metric, scores: Sequence[float]) -> ConfidenceInterval | None:
    """The interval of a metric's mean over a number of questions that was fixed beforehand."""
    return confidence_interval(scores, metric.highest, metric.lowest)


def mean_scores(scores: Sequence[QuestionScores], interval: Interval = usual_interval) -> MeanScores:
    """The means over these questions; interval: how those of the means are computed."""
    return _means(_columns(scores), range(len(scores)), interval)


def kinded_means(
    scored: Sequence[KindedScores], interval: Interval = usual_interval
) -> tuple[MeanScores, dict[str, dict[str, MeanScores]]]:
    """The means over these questions, and over those of each kind, by the name of that sort of kinds.

    Of each sort, the kind of most questions comes first.
    """
    places: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, question in enumerate(scored):
        for name, kind in question.kinds.items():
            places[name][kind].append(place)
    columns = _columns([question.scores for question in scored])
    by_kind = {
        name: {kind: _means(columns, of[kind], interval) for kind in _by_size(of)} for name, of in places.items()
    }
    return _means(columns, range(len(scored)), interval), by_kind


def _columns(scores: Sequence[QuestionScores]) -> Columns:
    """The scores of all questions by metric: each question's are looked at once, as they lie apart in memory."""
    columns = zip(*map(itemgetter(*METRICS), scores), strict=True) if scores else repeat(())
    return dict(zip(METRICS, columns, strict=False))


def _means(columns: Columns, places: Sequence[int], interval: Interval) -> MeanScores:
    """The means over the questions at these places."""
    known = {
        name: [value for value in map(column.__getitem__, places) if value is not None]
        for name, column in columns.items()
    }
    return MeanScores(
        questions=len(places),
        metrics={name: fmean(values) if values else None for name, values in known.items()},
        intervals={name: interval(METRICS[name], values) for name, values in known.items()},
    )


def _by_size(parts: Mapping[str, Sequence[int]]) -> list[str]:
    return sorted(parts, key=lambda kind: (-len(parts[kind]), kind))
