"""The quantile of Student's t that confidence intervals take.

SciPy has it too (`scipy.special.stdtrit`, with which the tests compare it), but loading SciPy for this one number takes
many times as long as computing a run's scores.
"""

from functools import cache
from math import exp, lgamma, log, pi
from statistics import NormalDist

_TOLERANCE = 1e-13
"""The relative change at which an iteration ends."""

_MOST_ITERATIONS = 500


@cache
def student_t_quantile(degrees: int, probability: float) -> float:
    """Return the value below which Student's t with so many degrees of freedom lies with that probability.

    degrees: at least 1; probability: above 0.5, below 1. By Newton's method, from below: there the tail is convex.
    """
    reached = NormalDist().inv_cdf(probability)  # Student's t lies further out
    for _ in range(_MOST_ITERATIONS):
        further = (_upper_tail(reached, degrees) - (1 - probability)) / _density(reached, degrees)
        reached += further
        if abs(further) <= _TOLERANCE * reached:
            break
    return reached


def _density(value: float, degrees: int) -> float:
    factor = lgamma((degrees + 1) / 2) - lgamma(degrees / 2) - log(degrees * pi) / 2
    return exp(factor - (degrees + 1) / 2 * log(1 + value**2 / degrees))


def _upper_tail(value: float, degrees: int) -> float:
    """The probability of more than a positive value, by the incomplete beta function (Abramowitz & Stegun, 26.7.1)."""
    a, b, x = degrees / 2, 0.5, degrees / (degrees + value**2)
    factor = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x))
    return factor / a * _continued_fraction(a, b, x) / 2


def _continued_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (ibid., 26.5.8), by Lentz's method; x < (a+1)/(a+b+2)."""
    numerator, denominator = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = denominator
    for m in range(1, _MOST_ITERATIONS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for term in (even, odd):
            denominator = 1 / (1 + term * denominator)
            numerator = 1 + term / numerator
            change = numerator * denominator
            value *= change
        if abs(change - 1) <= _TOLERANCE:
            break
    return value
