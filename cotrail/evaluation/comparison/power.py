"""The number of questions that a difference would have needed to be shown."""

import warnings
from collections.abc import Sequence
from math import ceil, isfinite
from statistics import fmean, stdev

POWER, ALPHA = 0.8, 0.05
"""The probability of showing a difference that there is, and that of showing one where there is none."""

LEAST_QUESTIONS = 2


def questions_needed(differences: Sequence[float]) -> int | None:
    """The number of questions by which a paired t-test shows a mean difference like this one, spread like these.

    It shows it with the probability `POWER` at the level `ALPHA` (Cohen 1988, "Statistical Power Analysis", chapter 2).
    None where the mean is 0, which no number of questions shows, and where the spread isn't known: all are equal.
    """
    if len(differences) < LEAST_QUESTIONS or not (spread := stdev(differences)) or not (mean := fmean(differences)):
        return None
    from statsmodels.stats.power import TTestPower

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no solution for effects so large that two questions are more than enough
        number = float(TTestPower().solve_power(effect_size=abs(mean) / spread, power=POWER, alpha=ALPHA))
    return max(LEAST_QUESTIONS, ceil(number)) if isfinite(number) else LEAST_QUESTIONS
