"""Steps that were carried out again: how they are drawn, and which share of them came out otherwise."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from cotrail.data.datasets.sampling import shuffled
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval, confidence_interval


class OtherwiseShare(Struct, frozen=True, kw_only=True):
    """How many of `of` came out otherwise; share and interval are None where there are none."""

    otherwise: int
    of: int
    share: float | None
    interval: ConfidenceInterval | None


def otherwise_share(otherwise: Sequence[bool]) -> OtherwiseShare:
    """The share of those that came out otherwise, with Wilson's interval."""
    count, of = sum(otherwise), len(otherwise)
    interval = confidence_interval([float(each) for each in otherwise])
    return OtherwiseShare(otherwise=count, of=of, share=count / of if of else None, interval=interval)


def draw_steps(candidates: Mapping[str, Sequence[int]], share: float, seed: int) -> dict[str, int]:
    """Draw this share of the questions, at least one, and of each one step; both depend on the seed and the keys alone.

    candidates: the steps of each question that may be drawn, by its key; none is empty.
    """
    size = max(1, round(share * len(candidates)))
    keys = set(shuffled(candidates, str, seed)[:size])
    return {key: _drawn(key, numbers, seed) for key, numbers in candidates.items() if key in keys}


def _drawn(key: str, numbers: Sequence[int], seed: int) -> int:
    return shuffled(numbers, lambda number: f"{key}\0{number}", seed)[0]
