"""How many answers are wrong by each cause."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from cotrail.evaluation.causes.cause import Cause, Explanation
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval, confidence_interval


class CauseCount(Struct, frozen=True, kw_only=True):
    """Wrong answers of a cause.

    share: of all wrong answers, with its interval. signs: to how many of them it applies, its own and others'.
    """

    cause: Cause
    questions: int
    share: float
    interval: ConfidenceInterval | None
    signs: int


def cause_counts(explained: Sequence[Explanation]) -> tuple[CauseCount, ...]:
    """Every cause in the order of precedence, those of no question too; none where no answer is wrong."""
    causes = [each.cause for each in explained]
    signs = Counter(sign.cause for each in explained for sign in each.signs)
    return tuple(_count(cause, causes, signs[cause]) for cause in Cause) if causes else ()


def _count(cause: Cause, causes: Sequence[Cause], signs: int) -> CauseCount:
    scores = [float(each == cause) for each in causes]
    number = causes.count(cause)
    return CauseCount(
        cause=cause,
        questions=number,
        share=number / len(causes),
        interval=confidence_interval(scores),
        signs=signs,
    )
