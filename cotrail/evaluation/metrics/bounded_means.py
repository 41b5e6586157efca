"""Bounds of the mean of bounded scores that hold for few, rare and lopsided ones: Clopper and Pearson's, generalized.

An interval of Student's t takes the mean for normally distributed. Where few questions score anything, or a few would
lose much of what many win a little, it isn't, and the interval misses the true mean two or three times as often as it
says. These bounds take the scores for no more than independent draws between the worst and the best possible one.

The n scores and one more, the best possible, are given random weights that sum to 1, all such weights alike (uniform
spacings). Their weighted mean exceeds the true one with a probability of 1 - alpha at least: so its quantile is the
upper bound; the worst possible score in place of the best gives the lower one (Gaffke 2005, Mathematical Methods of
Statistics 14, 451-467; Learned-Miller & Thomas 2020, arXiv:1905.06208). Of scores of 0 and 1 it is the exact binomial
bound (Clopper & Pearson 1934), and testing by it whether paired scores of 0 and 1 differ is McNemar's exact test. For
others that it always holds isn't proven, and no distribution is known for which it doesn't.

The weights are those of a Dirichlet distribution. Where two different scores are left, their weight is a beta variable;
otherwise the probability is Lugannani and Rice's saddlepoint approximation (1980, Advances in Applied Probability 12,
475-490), which is off by some percent of itself at most: bounds of 95 % are of 94.8 to 95.2 %.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from math import erfc, exp, inf, lgamma, log, log1p, pi, sqrt

# Quantiles of the beta distribution and of Student's t, which confidence intervals take, and a finder of roots.
#
# SciPy has them too (`scipy.stats.beta`, `scipy.special.stdtrit`, with which the tests compare these), but loading
# SciPy for a few numbers takes many times as long as computing a run's scores.

_TOLERANCE = 1e-13
"""The relative change at which an iteration ends."""

_MOST_ITERATIONS = 500

_LARGE = 1000
"""From here on, Stirling's series with two terms is exact as far as numbers go."""


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function is 0 that is below 0 at `low` and above 0 at `high`, by the method of Ridders (1979)."""
    at_low, at_high, before = function(low), function(high), high
    for _ in range(_MOST_ITERATIONS):
        middle = (low + high) / 2
        at_middle = function(middle)
        scale = sqrt(max(at_middle**2 - at_low * at_high, 0.0))
        found = middle if not scale else min(max(middle - (middle - low) * at_middle / scale, low), high)
        if abs(found - before) <= _TOLERANCE * abs(found):
            break
        before, at_found = found, function(found)
        for place, value in sorted(((middle, at_middle), (found, at_found))):
            if value <= 0:
                low, at_low = place, value
            elif place < high:
                high, at_high = place, value
    return before


def beta_share(value: float, a: float, b: float) -> float:
    """Return the probability of a beta variable below a value (Abramowitz & Stegun, 26.5); a, b: above 0."""
    if not 0 < value < 1:
        return float(value >= 1)
    return _series(value, a, b) if value <= (a + 1) / (a + b + 2) else 1 - _series(1 - value, b, a)


def _series(value: float, a: float, b: float) -> float:
    factor = exp(a * log(value) + b * log1p(-value) - _log_beta(a, b))
    return factor / a * _continued_fraction(a, b, value)


def _log_beta(a: float, b: float) -> float:
    """The logarithm of the beta function; for large values by Stirling's series, as gamma functions lose digits."""
    small, large = sorted((a, b))
    if large < _LARGE:
        return lgamma(a) + lgamma(b) - lgamma(a + b)
    both = small + large
    grown = (large - 0.5) * log1p(small / large) + small * (log(both) - 1) + (1 / both - 1 / large) / 12
    return lgamma(small) - grown


@cache
def beta_quantile(probability: float, a: float, b: float) -> float:
    """Return the value below which a beta variable lies with that probability, above 0 and below 1."""
    return root(lambda value: beta_share(value, a, b) - probability, 0.0, 1.0)


@cache
def student_t_quantile(degrees: int, probability: float) -> float:
    """Return the value below which Student's t with so many degrees of freedom lies with that probability.

    degrees: at least 1; probability: above 0.5, below 1.
    """
    share = beta_quantile(2 * probability - 1, 0.5, degrees / 2)
    return float((degrees * share / (1 - share)) ** 0.5)


def student_t_tail(value: float, degrees: int) -> float:
    """Return the probability of Student's t above a value that isn't negative."""
    return beta_share(degrees / (degrees + value**2), degrees / 2, 0.5) / 2


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


_PLACES = 12
"""Decimal places by which scores are distinguished: repeats of the same mean lie a little apart."""

_WIDEST, _NARROWEST = 23.0, -46.0
"""The logarithms of the distances between which saddlepoints are looked for."""

_LEAST = 1e-300
"""Probabilities below this count as this one."""

_MIDDLE = 1e-3
"""Closer to the middle, in standard deviations, one half is near enough."""

Points = Mapping[float, int]
"""How many scores of each size there are."""


def counted(scores: Iterable[float]) -> Points:
    """How many scores of each size there are, but for rounding."""
    found: Counter[float] = Counter()
    for score, number in Counter(scores).items():  # most questions share theirs with many others
        found[round(score, _PLACES) + 0.0] += number
    return found


def mean_bounds(scores: Points, lowest: float, highest: float, level: float) -> tuple[float, float]:
    """The interval that has the true mean in it with a probability of `level`.

    scores: one at least, from `lowest` to `highest`, the worst and the best possible one, which are finite.
    """
    alpha, mean = (1 - level) / 2, _mean(scores)
    high = _quantile(_with(scores, highest), alpha)
    low = 0.0 - _quantile(_mirrored(_with(scores, lowest)), alpha)
    return max(min(low, mean), lowest), min(max(high, mean), highest)


def mean_p_value(scores: Points, lowest: float, highest: float, expected: float = 0.0) -> float:
    """The two-sided p-value of the test by these bounds whether the true mean is `expected`.

    It is at most alpha where an interval of the level 1 - alpha leaves that out, as far as both are exact. Bounds and
    scores as in `mean_bounds`.
    """
    below = _above(_mirrored(_with(scores, lowest)), 0.0 - expected)
    above = _above(_with(scores, highest), expected)
    return min(1.0, 2 * min(below, above))


def _with(scores: Points, further: float) -> Points:
    return {score: number for score, number in scores.items() if number} | {further: scores.get(further, 0) + 1}


def _mirrored(points: Points) -> Points:
    return {0.0 - score: number for score, number in points.items()}


def _mean(points: Points) -> float:
    return sum(score * number for score, number in points.items()) / sum(points.values())


def _quantile(points: Points, alpha: float) -> float:
    """What the weighted mean exceeds with a probability of alpha, which is below one half."""
    low, high = min(points), max(points)
    if len(points) < 3:
        return high if low == high else low + (high - low) * beta_quantile(1 - alpha, points[high], points[low])

    def further(distance: float) -> float:
        return log(max(_saddlepoint(points, exp(distance))[1], _LEAST) / alpha)

    return _saddlepoint(points, exp(root(further, _NARROWEST, _WIDEST)))[0]


def _above(points: Points, value: float) -> float:
    """The probability that the weighted mean is at a value or above it."""
    rest = {score - value: number for score, number in points.items() if score != value}
    low, high = min(rest, default=inf), max(rest, default=-inf)
    if high <= 0 or low >= 0:
        return float(low >= 0)
    if len(rest) == 2:
        return beta_share(high / (high - low), rest[low], rest[high])
    if _mean(rest) > 0:
        return 1 - _above(_mirrored(rest), 0.0)

    def further(distance: float) -> float:
        return 0.0 - _saddlepoint(rest, exp(distance))[0]

    return _saddlepoint(rest, exp(root(further, _NARROWEST, _WIDEST)))[1]


def _saddlepoint(points: Points, distance: float) -> tuple[float, float]:
    """A value above the mean of the points, and the probability that their weighted mean is above it.

    distance: from the highest point to the pole, by which the value is named: its saddlepoint is 1 / (pole - value).
    The weights are gamma variables over their sum, so that the weighted mean is above a value where the sum of these
    variables times the points' distances from it is above 0.
    """
    highest = max(points)
    gaps = [(highest - point + distance, number) for point, number in points.items()]
    reach = sum(points.values()) / sum(number / gap for gap, number in gaps)
    exponent = sum(number * log(gap / reach) for gap, number in gaps)
    spread = sqrt(sum(number * (reach / gap - 1) ** 2 for gap, number in gaps))
    value, deviations = highest + distance - reach, sqrt(max(2 * exponent, 0.0))
    if deviations < _MIDDLE:
        return value, 0.5
    density = exp(-exponent) / sqrt(2 * pi)
    return value, erfc(deviations / sqrt(2)) / 2 + density * (1 / spread - 1 / deviations)
