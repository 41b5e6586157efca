"""Which system to take: the cheapest of those that the best one isn't shown to be better than."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean

from msgspec import Struct

from cotrail.evaluation.comparison.differences import ALPHA, SEED, holm
from cotrail.evaluation.comparison.intervals import DifferenceInterval, difference_interval
from cotrail.evaluation.comparison.sign_flips import sign_flip_test


class Candidate(Struct, frozen=True, kw_only=True):
    """A system that may be taken; scores: by the ids of the questions, the same ones for all. cost: of a question."""

    name: str
    scores: Mapping[str, float]
    cost: float | None

    @property
    def mean(self) -> float:
        """Its mean score."""
        return fmean(self.scores.values())


class Standing(Struct, frozen=True, kw_only=True):
    """Where a candidate stands beside the best one.

    differences: how much less it scores than the best, by question; span: the most that this may be.
    p_value: that of the difference, corrected for the comparisons of all candidates; None of the best itself.
    """

    name: str
    mean: float
    cost: float | None
    differences: tuple[float, ...]
    span: float
    p_value: float | None

    @property
    def behind(self) -> float:
        """How much less it scores than the best on average."""
        return fmean(self.differences)

    @property
    def interval(self) -> DifferenceInterval | None:
        """The 95 % interval of that."""
        return difference_interval(self.differences, self.span)

    @property
    def is_worse(self) -> bool:
        """Whether the best candidate is shown to be better."""
        return self.p_value is not None and self.p_value <= ALPHA


class Recommendation(Struct, frozen=True, kw_only=True):
    """The candidates, the best first, and the name of the one to take."""

    standings: tuple[Standing, ...]
    chosen: str

    @property
    def best(self) -> Standing:
        """The candidate with the best mean."""
        return self.standings[0]

    @property
    def taken(self) -> Standing:
        """The candidate to take."""
        return next(each for each in self.standings if each.name == self.chosen)


def recommend(candidates: Sequence[Candidate], span: float = 1.0) -> Recommendation:
    """Recommend one of at least one candidate.

    Which is the best is known from the scores only, so every pair counts as a comparison: their p-values are corrected
    together (Holm), and the best is called better with a probability of 5 % at most where all are equal. The best is
    taken where any cost isn't known. span: the largest possible difference of two scores.
    """
    ranked = sorted(candidates, key=lambda each: (-each.mean, _costs(each), each.name))
    pairs = list(combinations(ranked, 2))
    corrected = holm([sign_flip_test(_differences(*pair), SEED).p_value for pair in pairs])
    of_best = {pair[1].name: p_value for pair, p_value in zip(pairs, corrected, strict=True) if pair[0] is ranked[0]}
    standings = tuple(_standing(ranked[0], each, of_best.get(each.name), span) for each in ranked)
    alike = [each for each in standings if not each.is_worse]
    known = all(each.cost is not None for each in alike)
    chosen = min(alike, key=_costs) if known else standings[0]
    return Recommendation(standings=standings, chosen=chosen.name)


def _standing(best: Candidate, other: Candidate, p_value: float | None, span: float) -> Standing:
    return Standing(
        name=other.name,
        mean=other.mean,
        cost=other.cost,
        differences=tuple(_differences(best, other)),
        span=span,
        p_value=p_value,
    )


def _differences(one: Candidate, other: Candidate) -> list[float]:
    return [score - other.scores[key] for key, score in one.scores.items()]


def _costs(candidate: Candidate | Standing) -> float:
    return 0.0 if candidate.cost is None else candidate.cost
