"""Shares of questions, with their intervals."""

from collections.abc import Iterable

from msgspec import Struct

from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval, confidence_interval


class Share(Struct, frozen=True, kw_only=True):
    """A share with its exact interval of 95 %; value: None of no questions."""

    value: float | None
    hits: int
    of: int
    interval: ConfidenceInterval | None


def share(hits: Iterable[bool]) -> Share:
    """The share of hits."""
    values = [float(hit) for hit in hits]
    count = round(sum(values))
    return Share(
        value=count / len(values) if values else None, hits=count, of=len(values), interval=confidence_interval(values)
    )
