"""The matrix of wins and losses of two runs: which questions both answered right, one alone, or neither."""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, get_args

from cotrail.evaluation.comparison.outcomes import outcomes
from cotrail.services.views.compared_values import MetricColumns

Outcome = Literal["both", "first", "second", "neither", "differ"]
"""Whose answer is right: both runs', the first one's alone, the second one's alone, neither; `differ`: the scores do.

An answer is right that has the best possible score."""

_CELLS: Mapping[tuple[bool, bool], Outcome] = {
    (True, True): "both",
    (True, False): "first",
    (False, True): "second",
    (False, False): "neither",
}
"""The outcomes by whether the first run is right, and whether the second one is."""


def paired_scores(
    first: MetricColumns, second: MetricColumns, metric: str, keys: Collection[str]
) -> dict[str, tuple[float, float]]:
    """The scores of both runs by question, where both have one; in the order of the questions."""
    ours, theirs = first[metric].values, second[metric].values
    pairs = ((key, ours.get(key), theirs.get(key)) for key in keys)
    return {key: (one, other) for key, one, other in pairs if one is not None and other is not None}


def by_outcome(scores: Mapping[str, tuple[float, float]], best: float) -> dict[Outcome, list[str]]:
    """The ids of the questions of each outcome, in their order; best: the best possible score."""
    found: dict[Outcome, list[str]] = {outcome: [] for outcome in get_args(Outcome)}
    for key, (one, other) in scores.items():
        found[_CELLS[one >= best, other >= best]].append(key)
    ties = set(outcomes({key: one - other for key, (one, other) in scores.items()}).ties)
    found["differ"] += (key for key in scores if key not in ties)
    return found


def counts_of(found: Mapping[Outcome, Sequence[str]]) -> dict[Outcome, int]:
    """How many questions there are of each outcome."""
    return {outcome: len(keys) for outcome, keys in found.items()}
