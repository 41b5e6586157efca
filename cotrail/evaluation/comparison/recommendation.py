"""Which system to take: the cheapest one that is shown to be about as good as any other; costs and Pareto front.

That no difference is shown says little with few questions, so it recommends nothing. A system is about as good as any
other where it is at most `MARGIN` behind each of them with all that the intervals leave open: a test of non-inferiority
(Piaggio et al. 2012, doi:10.1001/jama.2012.87802) for each of the others, as which is the best in truth isn't known
(Hsu 1984, "Constrained simultaneous confidence intervals for multiple comparisons with the best"). The intervals are
those of all pairs together, so that a system that is more than `MARGIN` behind the best in truth is taken with a
probability of `ALPHA` at most. Where no system is shown to be that good, nothing is decided.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import inf
from statistics import fmean

from msgspec import Struct

from cotrail.evaluation.comparison.differences import Difference, differences_of
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval, confidence_interval

# The Pareto front: what no other has more quality than at the same cost, or less cost at the same quality.

PLACES = 12
"""Decimal places by which costs and qualities are distinguished."""


def pareto_front(points: Mapping[str, tuple[float, float]]) -> tuple[str, ...]:
    """The names of the points on the front, the cheapest first; points: cost and quality by name.

    Of points with the same cost and quality, but for rounding, all are on it.
    """
    rounded = {name: (round(cost, PLACES), round(quality, PLACES)) for name, (cost, quality) in points.items()}
    front = []
    best, best_cost = float("-inf"), float("-inf")
    for name, (cost, quality) in sorted(rounded.items(), key=lambda item: (item[1][0], -item[1][1], item[0])):
        if quality > best or (quality, cost) == (best, best_cost):
            front.append(name)
            best, best_cost = quality, cost
    return tuple(front)


MARGIN = 0.02
"""The difference of scores that doesn't matter, as a share of the largest possible one."""


class Candidate(Struct, frozen=True, kw_only=True):
    """A system that may be taken; scores: by the ids of the questions, the same ones for all.

    costs: of these questions; None where they aren't known.
    """

    name: str
    scores: Mapping[str, float]
    costs: Sequence[float] | None

    @property
    def mean(self) -> float:
        """Its mean score."""
        return fmean(self.scores.values())

    @property
    def cost(self) -> float | None:
        """The mean cost of a question."""
        return fmean(self.costs) if self.costs else None


class RankedCandidate(Struct, frozen=True, kw_only=True):
    """A candidate at its place in a ranking.

    cost: of a question on average; cost_interval: its 95 % interval, of Student's t as costs have no bound.
    behind: how much less it scores than the candidate with the highest mean; None of that one itself.
    most_behind: how much less it may score than any other, by the upper ends of the intervals, which hold together.
    is_as_good: whether that is at most `MARGIN`.
    """

    name: str
    mean: float
    cost: float | None
    cost_interval: ConfidenceInterval | None
    behind: Difference | None
    most_behind: float
    is_as_good: bool

    @property
    def is_worse(self) -> bool:
        """Whether the candidate with the highest mean is shown to be better."""
        return self.behind is not None and self.behind.verdict == "better"


class Recommendation(Struct, frozen=True, kw_only=True):
    """The candidates, those with the highest means first, and the name of the one to take.

    chosen: None where nothing is decided. front: names of those that no other beats in quality and cost, the cheapest
    first; empty where a cost isn't known.
    """

    ranking: tuple[RankedCandidate, ...]
    chosen: str | None
    front: tuple[str, ...]

    @property
    def highest(self) -> RankedCandidate:
        """The candidate with the highest mean."""
        return self.ranking[0]

    @property
    def taken(self) -> RankedCandidate | None:
        """The candidate to take; None where nothing is decided."""
        return next((each for each in self.ranking if each.name == self.chosen), None)


def recommend(
    candidates: Sequence[Candidate], span: float = 1.0, lowest: float = 0.0, *, is_fixed: bool = True
) -> Recommendation:
    """Recommend one of at least one candidate, or none.

    Of those that are about as good as any other the cheapest is taken, or the one with the highest mean where any cost
    isn't known. Where nothing scores more than the lowest possible score, there is nothing to take.
    span: the largest possible difference of two scores. is_fixed: whether the number of questions was fixed beforehand;
    otherwise the scores are in the order in which the questions were asked.
    """
    ranked = sorted(candidates, key=lambda each: (-round(each.mean, PLACES), _costs(each), each.name))
    places = list(combinations(range(len(ranked)), 2))
    family = [[score - ranked[b].scores[key] for key, score in ranked[a].scores.items()] for a, b in places]
    pairs = dict(zip(places, differences_of(family, span, is_fixed=is_fixed), strict=True))
    ranking = tuple(_placed(ranked, place, pairs, span) for place in range(len(ranked)))
    good = [each for each in ranking if each.is_as_good and ranked[0].mean > lowest]
    known = all(each.cost is not None for each in ranking)
    chosen = min(good, key=_costs if all(each.cost is not None for each in good) else ranking.index, default=None)
    front = pareto_front({each.name: (_costs(each), each.mean) for each in ranking}) if known else ()
    return Recommendation(ranking=ranking, chosen=chosen.name if chosen else None, front=front)


def _placed(
    ranked: Sequence[Candidate], place: int, pairs: Mapping[tuple[int, int], Difference], span: float
) -> RankedCandidate:
    """The candidate at a place; pairs: how much more the first of two scores, by their places."""
    ends = [_most(difference, place, pair, span) for pair, difference in pairs.items() if place in pair]
    most, own = max(ends, default=0.0), ranked[place]
    return RankedCandidate(
        name=own.name,
        mean=own.mean,
        cost=own.cost,
        cost_interval=confidence_interval(own.costs, inf) if own.costs else None,
        behind=pairs[0, place] if place else None,
        most_behind=most,
        is_as_good=most <= MARGIN * span,
    )


def _most(difference: Difference, place: int, pair: tuple[int, int], span: float) -> float:
    """How much less the candidate at a place may score than the other one of a pair."""
    if difference.interval is None:
        return span
    return difference.interval.high if place == pair[1] else 0.0 - difference.interval.low


def _costs(candidate: Candidate | RankedCandidate) -> float:
    return 0.0 if candidate.cost is None else candidate.cost


# Wins, losses and ties: which questions the one system answered better than the other.

_EQUAL = 1e-12
"""Scores that differ less are equal but for rounding."""


class Outcomes(Struct, frozen=True, kw_only=True):
    """The ids of the questions on which the first system scores more, less and the same, in their order."""

    wins: tuple[str, ...]
    losses: tuple[str, ...]
    ties: tuple[str, ...]


def outcomes(differences: Mapping[str, float]) -> Outcomes:
    """Sort questions by who scores more; differences: by their ids."""
    return Outcomes(
        wins=tuple(key for key, difference in differences.items() if difference > _EQUAL),
        losses=tuple(key for key, difference in differences.items() if difference < -_EQUAL),
        ties=tuple(key for key, difference in differences.items() if abs(difference) <= _EQUAL),
    )
