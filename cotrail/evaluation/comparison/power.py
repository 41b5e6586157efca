"""The number of questions that a difference would have needed to be shown."""

from collections.abc import Sequence
from math import ceil
from statistics import fmean, stdev

POWER, ALPHA = 0.8, 0.05
"""The probability of showing a difference that there is, and that of showing one where there is none."""

LEAST_QUESTIONS = 2

_EQUAL = 1e-9
"""A spread below this is but rounding."""

TRIED_QUESTIONS = 10
"""Fewer than this are tried one by one: the solver finds no number that is far below 10."""


def questions_needed(differences: Sequence[float]) -> int | None:
    """The number of questions by which a paired t-test shows a mean difference like this one, spread like these.

    It shows it with the probability `POWER` at the level `ALPHA` (Cohen 1988, "Statistical Power Analysis", chapter 2).
    None where the mean is 0, which no number of questions shows, and where the spread isn't known: all are equal.
    """
    if len(differences) < LEAST_QUESTIONS or not (mean := fmean(differences)):
        return None
    if (spread := stdev(differences)) < _EQUAL:
        return None
    from statsmodels.stats.power import TTestPower

    test, effect = TTestPower(), abs(mean) / spread
    for number in range(LEAST_QUESTIONS, TRIED_QUESTIONS):
        if test.power(effect, number, ALPHA) >= POWER:
            return number
    return ceil(float(test.solve_power(effect_size=effect, power=POWER, alpha=ALPHA)))
