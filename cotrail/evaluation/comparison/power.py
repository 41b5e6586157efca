"""The mean of differences, and the number of questions that it would have needed to be shown."""

from collections.abc import Sequence
from math import ceil
from statistics import NormalDist, fmean, stdev

POWER, ALPHA = 0.8, 0.05
"""The probability of showing a difference that there is, and that of showing one where there is none."""

LEAST_QUESTIONS = 2

_EQUAL = 1e-12
"""A mean difference below this is but rounding."""

_ALIKE = 1e-9
"""The same of a spread."""

_LARGE = 20.0
"""A mean of as many deviations is shown by the fewest questions; more is beyond what can be computed."""

_MANY = 10_000
"""From so many questions on, Student's t is the normal distribution as far as these numbers go."""


def mean_difference(differences: Sequence[float]) -> float:
    """The mean of at least one difference: 0 where wins and losses sum to nothing, whatever the last bits say."""
    mean = fmean(differences)
    return 0.0 if abs(mean) < _EQUAL else mean


def questions_needed(differences: Sequence[float], alpha: float = ALPHA) -> int | None:
    """The number of questions by which a paired t-test shows a mean difference like this one, spread like these.

    It shows it with the probability `POWER` at the level `alpha` (Cohen 1988, "Statistical Power Analysis", chapter 2).
    None where the mean is 0, which no number of questions shows, and where the spread isn't known: all are equal.
    """
    if len(differences) < LEAST_QUESTIONS or not (mean := mean_difference(differences)):
        return None
    if (spread := stdev(differences)) < _ALIKE:
        return None
    effect, normal = min(abs(mean) / spread, _LARGE), NormalDist()
    number = max(LEAST_QUESTIONS, ceil(((normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(POWER)) / effect) ** 2))
    if number >= _MANY:
        return number
    from scipy import stats

    # A t-test needs a few more than a test that knows the spread. Statsmodels' solver finds none for large effects,
    # and NaN for small ones.
    while stats.nct.sf(stats.t.isf(alpha / 2, number - 1), number - 1, effect * number**0.5) < POWER:
        number += 1
    return number
