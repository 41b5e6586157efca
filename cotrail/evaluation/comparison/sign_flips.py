"""The paired permutation test, in which the two systems might have had each other's scores.

If they are equal, each question's difference might as well have the other sign (Fisher 1935, "The Design of
Experiments", section 21; recommended for systems that are tested on the same questions by Dror et al. 2018,
doi:10.18653/v1/P18-1128). The p-value is the share of all ways to set the signs whose mean is at least as far from 0.
"""

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

RESAMPLES = 9_999
"""The number of ways to set the signs that are drawn where there are more of them; so no p-value is below 0.0001."""

_PLACES = 12
"""Decimal places by which two differences are told apart: rounding puts the same difference a little apart."""

_SUM_PLACES = 9
"""The same of sums of many."""


class PermutationTest(Struct, frozen=True, kw_only=True):
    """A two-sided p-value: the probability of a difference at least this large if the systems were equal.

    method: `exact` counts all ways to set the signs; `sampled` draws some, and counts the one that is seen too.
    """

    p_value: float
    method: Literal["exact", "sampled"]


def sign_flip_test(differences: Sequence[float], seed: int) -> PermutationTest:
    """Test whether the mean of these differences is 0; neither their order nor their common sign matters.

    Differences of 0 decide nothing. Where all others are equally large, as with scores of 0 and 1, this is McNemar's
    exact test for any number of questions; otherwise it is exact as far as there are no more than `RESAMPLES` ways.
    """
    import numpy
    from scipy import stats

    given = numpy.sort(numpy.round(numpy.asarray(differences, dtype=float), _PLACES))
    left = given[given != 0]
    sizes, counts = numpy.unique(numpy.abs(left), return_counts=True)
    if len(sizes) < 2:
        p_value = stats.binomtest(int((left > 0).sum()), len(left)).pvalue if len(left) else 1.0
        return PermutationTest(p_value=float(p_value), method="exact")
    if 2 ** len(left) <= RESAMPLES:
        exact = stats.permutation_test(
            (left,), _far, permutation_type="samples", vectorized=True, n_resamples=RESAMPLES, alternative="greater"
        )
        return PermutationTest(p_value=float(exact.pvalue), method="exact")
    sums = numpy.array([left[numpy.abs(left) == size].sum() for size in sizes])
    p_value = _sampled(sums, sizes, counts, numpy.random.default_rng(seed))
    return PermutationTest(p_value=p_value, method="sampled")


def _sampled(sums: Any, sizes: Any, counts: Any, chance: Any) -> float:
    """Draw the signs of all differences of one size at once: how many of them are positive is binomial."""
    from scipy import stats

    def flipped(size: tuple[int, ...]) -> Any:
        return sizes * (2 * chance.binomial(counts, 0.5, size=size) - counts)

    options = {"n_resamples": RESAMPLES, "batch": max(1, 2_000_000 // len(sizes)), "alternative": "greater"}
    return float(stats.monte_carlo_test(sums, flipped, _far, vectorized=True, **options).pvalue)


def _far(values: Any, axis: int = -1) -> Any:
    """How far the sum is from 0, rounded, so that equal sums are equal whatever the order of their terms."""
    return abs(values.sum(axis=axis)).round(_SUM_PLACES)
