"""Calibration error of stated confidence: how far it is from the share of what turned out right.

As Humanity's Last Exam states it (Phan et al. 2025, arXiv:2501.14249), and BrowseComp after it (Wei et al. 2025,
arXiv:2504.12516): the root of the mean squared difference in bins of 100 (Hendrycks et al. 2019, arXiv:1812.04606). The
published script leaves the last bin out of its sum; here it counts.
"""

from collections.abc import Sequence
from math import fsum, sqrt
from statistics import fmean

from msgspec import Struct

BIN = 100
"""The number of statements in a bin, those that are left over being in the last one; fewer are one bin."""


class Bin(Struct, frozen=True, kw_only=True):
    """Statements of similar confidence: how many, their mean confidence, and the share that was right."""

    statements: int
    confidence: float
    right: float


class CalibrationError(Struct, frozen=True, kw_only=True):
    """The error, from 0 to 1, with the bins that it is made of, by increasing confidence."""

    error: float
    bins: tuple[Bin, ...]


def calibration_error(statements: Sequence[tuple[float, bool]], size: int = BIN) -> CalibrationError | None:
    """The error of statements, each with its confidence (0 to 1) and whether it was right; None where there are none.

    Statements of the same confidence are in the order in which they are given.
    """
    if not statements:
        return None
    ordered = sorted(statements, key=lambda statement: statement[0])
    starts = range(0, max(len(ordered) // size, 1) * size, size)
    ends = [*starts[1:], len(ordered)]
    bins = tuple(_bin(ordered[start:end]) for start, end in zip(starts, ends, strict=True))
    squares = fsum(each.statements * (each.confidence - each.right) ** 2 for each in bins)
    return CalibrationError(error=sqrt(squares / len(ordered)), bins=bins)


def _bin(statements: Sequence[tuple[float, bool]]) -> Bin:
    return Bin(
        statements=len(statements),
        confidence=fmean(confidence for confidence, _ in statements),
        right=fmean(right for _, right in statements),
    )
