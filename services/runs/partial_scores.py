"""Scores of a run while it goes on, of the questions that have ended so far."""

from msgspec import Struct

from cotrail.common.humanize import count
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval


class PartialScore(Struct, frozen=True, kw_only=True):
    """The mean of a metric over the first questions of a run, all of which have ended.

    interval: the 95 % confidence sequence, which holds at every look, where the questions are in a random order.
    """

    metric: str
    title: str
    mean: float
    interval: ConfidenceInterval


def partial_line(scores: tuple[PartialScore, ...]) -> str:
    """e.g. `answer F1 so far 0.52 (0.46-0.58) over the first 212 questions`; empty where nothing is known yet."""
    parts = [
        f"{each.title[0].lower()}{each.title[1:]} {'so far ' if place == 0 else ''}{each.mean:.2f} "
        f"({each.interval.low:.2f}-{each.interval.high:.2f})"
        for place, each in enumerate(scores)
    ]
    return f"{', '.join(parts)} over the first {count(scores[0].interval.questions, 'question')}" if parts else ""
