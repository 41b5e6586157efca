"""Paired bootstrap of the difference between two systems, and the spread of results over demonstration sets."""

import statistics
from collections.abc import Sequence

from msgspec import Struct

from cotrail.errors import InputError

_MOST_VALUES = 2_000_000
"""Values drawn at once, to bound the memory."""


class PairedDifference(Struct, frozen=True, kw_only=True):
    """Mean difference between two systems on the same questions, with its confidence interval.

    p_value: two-sided; the probability of a difference at least this large if the systems were equal.
    """

    mean: float
    low: float
    high: float
    p_value: float


class Spread(Struct, frozen=True, kw_only=True):
    """A mean and the sample standard deviation (n - 1); the latter is None for a single value."""

    mean: float
    deviation: float | None


def paired_difference(
    ours: Sequence[float],
    theirs: Sequence[float],
    seed: int,
    resamples: int = 10_000,
    level: float = 0.95,
) -> PairedDifference:
    """Estimate the mean of `ours` - `theirs` with a paired bootstrap over the questions.

    The interval is the percentile interval of the resampled means. The p-value is the share of resampled means that are
    at least as far from the mean as the mean is from 0, the sample itself counted as one of them (Davison & Hinkley
    1997, section 4.4), so that it is never 0. InputError where there are no questions, or not as many on both sides.
    """
    if len(ours) != len(theirs) or not ours:
        raise InputError(
            f"{len(ours)} and {len(theirs)} scores can't be compared: give those of both systems on the same questions"
        )
    import numpy

    differences = numpy.asarray(ours, dtype=float) - numpy.asarray(theirs, dtype=float)
    chance, count = numpy.random.default_rng(seed), len(differences)
    resampled = numpy.empty(resamples)
    rows = max(1, _MOST_VALUES // count)
    for start in range(0, resamples, rows):
        places = chance.integers(count, size=(min(rows, resamples - start), count))
        resampled[start : start + rows] = differences[places].mean(axis=1)
    mean = float(differences.mean())
    low, high = numpy.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    extreme = numpy.count_nonzero(numpy.abs(resampled - mean) >= abs(mean))
    return PairedDifference(mean=mean, low=float(low), high=float(high), p_value=(1 + int(extreme)) / (1 + resamples))


def mean_and_deviation(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation of the results of several demonstration sets; InputError for no results."""
    if not values:
        raise InputError("there are no results to take the mean of; wait until a run is finished")
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return Spread(mean=statistics.mean(values), deviation=deviation)


def released_mean_and_deviation(percentages: Sequence[float]) -> Spread:
    """The same with the arithmetic of IRCoT's released `run.py`: percentages are rounded to 0.1 before and after."""
    spread = mean_and_deviation([round(value, 1) for value in percentages])
    deviation = None if spread.deviation is None else round(spread.deviation, 1)
    return Spread(mean=round(spread.mean, 1), deviation=deviation)
