"""Scores of a question by every metric, and their means over a run and over its kinds of questions."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

from msgspec import Struct

from cotrail.common.humanize import largest_first
from cotrail.common.toml_files import read_toml
from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.data.datasets.registry import scoring_of
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval, confidence_interval
from cotrail.evaluation.metrics.metric import Metric, MetricFacts, QuestionScores, ScoredQuestion

_CAVEATS: dict[str, str] = read_toml(Path(__file__).with_name("caveats.toml"))
CAVEAT, LEFT_OVER_CAVEAT, REPEATS_CAVEAT, SEQUENTIAL_CAVEAT = _CAVEATS.values()
"""What means and their intervals promise: of a fixed number of questions, of ended runs, of repeats, of rules."""

IntervalOf = Callable[[MetricFacts, Sequence[float]], ConfidenceInterval | None]
"""Computes the interval of a metric's mean from the questions' scores."""

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


def usual_interval(metric: MetricFacts, scores: Sequence[float]) -> ConfidenceInterval | None:
    """The interval of a metric's mean over a number of questions that was fixed beforehand."""
    return confidence_interval(scores, metric.highest, metric.lowest)


def mean_scores(scores: Sequence[QuestionScores], interval: IntervalOf = usual_interval) -> MeanScores:
    """The means over these questions; interval: how those of the means are computed."""
    return _means(_columns(scores), range(len(scores)), interval)


def kinded_means(
    scored: Sequence[KindedScores], interval: IntervalOf = usual_interval
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
        name: {kind: _means(columns, of[kind], interval) for kind in largest_first(of)} for name, of in places.items()
    }
    return _means(columns, range(len(scored)), interval), by_kind


def _columns(scores: Sequence[QuestionScores]) -> Columns:
    """The scores of all questions by metric: each question's are looked at once, as they lie apart in memory."""
    columns = zip(*map(itemgetter(*METRICS), scores), strict=True) if scores else repeat(())
    return dict(zip(METRICS, columns, strict=False))


def _means(columns: Columns, places: Sequence[int], interval: IntervalOf) -> MeanScores:
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


class Scorable(Protocol):
    """What scores take of a recorded question; see `ScoredQuestion`. paragraphs: the collected ones."""

    @property
    def status(self) -> str: ...
    @property
    def answer(self) -> str | None: ...
    @property
    def answers(self) -> tuple[str, ...]: ...
    @property
    def gold(self) -> tuple[GoldParagraph, ...]: ...
    @property
    def pinned(self) -> GoldParagraph | None: ...
    @property
    def stated(self) -> str: ...
    @property
    def paragraphs(self) -> tuple[Paragraph, ...]: ...


class ScoredRun(Protocol):
    """What scores take of a recorded run."""

    @property
    def system(self) -> str: ...
    @property
    def system_version(self) -> int: ...
    @property
    def settings(self) -> dict[str, Any]: ...
    @property
    def dataset(self) -> str: ...
    @property
    def searches(self) -> bool: ...


class Answering(Protocol):
    """A system, as far as scores need it."""

    @property
    def judges(self) -> bool: ...
    def answers_with(self, settings: Mapping[str, Any]) -> bool: ...


CANCELLED = "cancelled"
"""The status of a question that a person, a rule or a budget ended before it was answered: it has no scores."""

FindRecorded = Callable[[str, int], Answering | None]
Score = Callable[[Scorable], QuestionScores]


def scorer(run: ScoredRun, find_recorded: FindRecorded, metrics: Iterable[str] = METRICS) -> Score:
    """What scores a run's questions by these metrics; find_recorded: `systems.registry.recorded_system`."""
    system, scoring = find_recorded(run.system, run.system_version), scoring_of(run.dataset)
    answering = system is None or system.answers_with(run.settings)
    named = {name: _shared(METRICS[name]) for name in metrics}
    if system is not None and system.judges:  # a verdict isn't an answer
        return lambda _: dict.fromkeys(named)

    def scored(question: Scorable) -> QuestionScores:
        if question.status == CANCELLED:
            return dict.fromkeys(named)
        asked = ScoredQuestion(
            scoring=scoring,
            answer=question.answer,
            answers=question.answers,
            collected=question.paragraphs,
            gold=question.gold,
            pinned=question.pinned,
            stated=question.stated,
            answering=answering,
            searching=run.searches,
        )
        return {name: value(asked) for name, value in named.items()}

    return scored


def _shared(metric: Metric) -> Callable[[ScoredQuestion], float | None]:
    """The metric's value, equal ones as one object: means look at those of many questions again and again."""
    values: dict[float | None, float | None] = {}

    def value(question: ScoredQuestion) -> float | None:
        found = metric.value(question)
        return values.setdefault(found, found)

    return value
