"""Scores of a run while it goes on, of the questions that have ended so far."""

from collections.abc import Iterator
from itertools import islice
from statistics import fmean

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.common.humanize import count
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval
from cotrail.evaluation.metrics.registry import METRICS, main_metrics
from cotrail.evaluation.metrics.stop_rules import sequence_interval
from cotrail.models.queries.prefixes import Prefix
from cotrail.models.queries.runs import RunRecord
from cotrail.models.records.runs import rule_of

SHOWN = 3
"""The number of metrics that are shown."""

LOOK_SECONDS = 0.2
"""How long scoring the questions that have ended since the last look may take, not counting the last chunk."""


class PartialScore(Struct, frozen=True, kw_only=True):
    """The mean of a metric over the first questions of a run, all of which have ended.

    interval: the 95 % confidence sequence, which holds at every look, where the questions are in a random order.
    """

    metric: str
    title: str
    mean: float
    interval: ConfidenceInterval


class PartialScores:
    """The main metrics of a run that it has, and before them that of its rule, read again and again."""

    def __init__(self, record: RunRecord) -> None:
        rule = rule_of(record.provenance)
        ruling = [METRICS[rule.metric]] if rule else []
        bounded = (metric for metric in main_metrics() if not metric.is_count)
        self._metrics = {metric.name: metric for metric in (*ruling, *bounded)}
        self._prefix = Prefix(record, self._metrics)
        self._scores: tuple[PartialScore, ...] = ()

    def look(self, connection: Connection) -> tuple[PartialScore, ...]:
        """Take in the questions that have ended since the last look; returns the scores so far."""
        seen = self._prefix.questions
        self._prefix.advance(connection, LOOK_SECONDS)
        if self._prefix.questions > seen:
            self._scores = tuple(islice(self._means(), SHOWN))
        return self._scores

    def _means(self) -> Iterator[PartialScore]:
        for name, metric in self._metrics.items():
            known = [score for score in self._prefix.scores[name] if score is not None]
            if interval := sequence_interval(metric, known):
                yield PartialScore(metric=name, title=metric.title, mean=fmean(known), interval=interval)


def partial_line(scores: tuple[PartialScore, ...]) -> str:
    """e.g. `answer F1 so far 0.52 (0.46-0.58) over the first 212 questions`; empty where nothing is known yet."""
    parts = [
        f"{each.title[0].lower()}{each.title[1:]} {'so far ' if place == 0 else ''}{each.mean:.2f} "
        f"({each.interval.low:.2f}-{each.interval.high:.2f})"
        for place, each in enumerate(scores)
    ]
    return f"{', '.join(parts)} over the first {count(scores[0].interval.questions, 'question')}" if parts else ""
