"""Tables of a run's scores: of all questions, and the main ones by the kinds that its dataset names."""

from collections.abc import Iterator, Mapping
from itertools import islice

from msgspec import Struct

from cotrail.common.humanize import count
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval as ConfidenceInterval
from cotrail.evaluation.metrics.question_scores import CAVEAT as CAVEAT
from cotrail.evaluation.metrics.question_scores import MeanScores
from cotrail.evaluation.metrics.registry import METRICS, main_metrics
from cotrail.services.views.run_scores import RunScores, Stopping

SEQUENTIAL_CAVEAT = (
    "The questions are in a random order, and the means are over the first of them, up to where the rule stopped the "
    "run or to the first that hasn't ended. The 95 % intervals are confidence sequences (Waudby-Smith & Ramdas 2024): "
    "they hold whenever one looks or stops, and are wider than intervals of a fixed number of questions."
)

SHOWN_METRICS = 3
"""The number of main metrics that a line of 80 columns has room for: the first that the run has."""

SHOWN_KINDS = 20


class MetricRow(Struct, frozen=True, kw_only=True):
    """A metric of a run: its mean over the questions that have it, with a confidence interval, and what it measures."""

    name: str
    mean: float | None
    interval: ConfidenceInterval | None
    definition: str


class KindRow(Struct, frozen=True, kw_only=True):
    """The questions of a kind: how many, and their means with confidence intervals, in the order of the metrics."""

    kind: str
    questions: int
    means: tuple[tuple[float | None, ConfidenceInterval | None], ...]


class KindTable(Struct, frozen=True, kw_only=True):
    """Scores by kind; sort: what the kinds are, e.g. `level`; note: how many smaller kinds aren't shown, if any."""

    sort: str
    metrics: tuple[str, ...]
    rows: tuple[KindRow, ...]
    note: str


def until_line(until: Stopping, questions: int) -> str:
    """How far a run with a rule got, e.g. `stopped by width(answer_f1) < 0.05 after 212 of 1,000 questions`."""
    of = f"{until.questions:,} of {count(questions, 'question')}"
    return f"stopped by {until.rule} after {of}" if until.met else f"{until.rule} isn't met after {of}"


def metric_rows(scores: RunScores) -> list[MetricRow]:
    """A row for each metric."""
    return [
        MetricRow(name=name, mean=scores.metrics[name], interval=scores.intervals[name], definition=metric.meaning)
        for name, metric in METRICS.items()
    ]


def kind_tables(scores: RunScores) -> Iterator[KindTable]:
    """A table for each sort of kinds of which the run has several."""
    names = (metric.name for metric in main_metrics() if not metric.is_count)
    metrics = tuple(name for name in names if scores.metrics[name] is not None)[:SHOWN_METRICS]
    for sort, parts in scores.kinds.items():
        if len(parts) > 1:
            yield _table(sort, parts, metrics)


def _table(sort: str, parts: Mapping[str, MeanScores], metrics: tuple[str, ...]) -> KindTable:
    rows = tuple(
        KindRow(
            kind=kind,
            questions=part.questions,
            means=tuple((part.metrics[name], part.intervals[name]) for name in metrics),
        )
        for kind, part in islice(parts.items(), SHOWN_KINDS)
    )
    left_out = len(parts) - len(rows)
    note = f"and {count(left_out, 'smaller kind')}, which cotrail score --json has too" if left_out else ""
    return KindTable(sort=sort, metrics=metrics, rows=rows, note=note)
