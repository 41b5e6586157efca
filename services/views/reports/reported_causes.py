"""Causes of wrong answers as a run's page shows them: a table, and a figure of their shares."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from cotrail.evaluation.causes.cause import Cause, Explanation
from cotrail.evaluation.causes.cause_counts import CauseCount, cause_counts
from cotrail.evaluation.metrics.confidence_intervals import share_interval

WIDTH, LEFT, ROW = 920, 170, 24
"""The canvas, the room for the names left of the bars, and the height of a row, in SVG units."""
ROOM = 70
"""The room for a number right of the longest bar."""


class CauseBar(Struct, frozen=True, kw_only=True):
    """A bar of the figure: where it is, how long, and the ends of its interval."""

    cause: Cause
    y: float
    length: float
    low: float
    high: float
    value: str


class ReportedCauses(Struct, frozen=True, kw_only=True):
    """The causes that apply to any wrong answer, as rows and bars; wrong: the number of wrong answers.

    signed: whether it is known to how many answers a cause applies beside those whose cause it is.
    """

    wrong: int
    rows: tuple[CauseCount, ...]
    bars: tuple[CauseBar, ...]
    signed: bool = True
    width: int = WIDTH
    left: int = LEFT
    row: int = ROW

    @property
    def height(self) -> int:
        """The height of the canvas."""
        return ROW * len(self.bars)


def reported_causes(explanations: Sequence[Explanation]) -> ReportedCauses | None:
    """The causes of these wrong answers; None where there is none."""
    rows = tuple(each for each in cause_counts(explanations) if each.signs)
    if not rows:
        return None
    longest = max(each.interval.high if each.interval else each.share for each in rows)
    scale = (WIDTH - LEFT - ROOM) / longest
    bars = tuple(_bar(each, place, scale) for place, each in enumerate(rows))
    return ReportedCauses(wrong=len(explanations), rows=rows, bars=bars)


def counted_causes(counts: Mapping[str, int]) -> ReportedCauses | None:
    """The same of causes that are only counted, by their slugs: without the signs of others."""
    wrong = sum(counts.values())
    if not wrong:
        return None
    rows = tuple(_counted(cause, counts[cause.slug], wrong) for cause in Cause if counts.get(cause.slug))
    scale = (WIDTH - LEFT - ROOM) / max(each.interval.high if each.interval else each.share for each in rows)
    return ReportedCauses(
        wrong=wrong, rows=rows, bars=tuple(_bar(each, place, scale) for place, each in enumerate(rows)), signed=False
    )


def _counted(cause: Cause, number: int, wrong: int) -> CauseCount:
    interval = share_interval(number, wrong)
    return CauseCount(cause=cause, questions=number, share=number / wrong, interval=interval, signs=0)


def _bar(each: CauseCount, place: int, scale: float) -> CauseBar:
    low, high = (each.interval.low, each.interval.high) if each.interval else (each.share, each.share)
    return CauseBar(
        cause=each.cause,
        y=place * ROW,
        length=each.share * scale,
        low=LEFT + low * scale,
        high=LEFT + high * scale,
        value=f"{each.share:.0%}",
    )
