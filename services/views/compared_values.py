"""What runs are compared by, and its value of every question."""

from collections.abc import Collection, Mapping

from msgspec import Struct

from cotrail.evaluation.metrics.metric import MetricFacts


class MetricColumn(Struct, frozen=True, kw_only=True):
    """A metric of a run, or what a judge says of it.

    values: of each question by its id; None where the question has none.
    """

    metric: MetricFacts
    values: Mapping[str, float | None]


MetricColumns = Mapping[str, MetricColumn]
"""The columns of a run by the names of the metrics."""


def paired(first: MetricColumns, second: MetricColumns, metric: str, keys: Collection[str]) -> dict[str, float]:
    """The first run's value less the second's, by question, where both have one; in the order of the questions."""
    ours, theirs = first[metric].values, second[metric].values
    pairs = ((key, ours.get(key), theirs.get(key)) for key in keys)
    return {key: one - other for key, one, other in pairs if one is not None and other is not None}
