"""Which system to take: the best one, or a cheaper one that is shown to be about as good.

That no difference is shown says little with few questions, so it recommends nothing. A cheaper system is about as good
where it is at most `MARGIN` behind the best with all that its interval leaves open: a test of non-inferiority
(Piaggio et al. 2012, doi:10.1001/jama.2012.87802).
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean

from msgspec import Struct

from cotrail.evaluation.comparison.differences import ALPHA, SEED, holm
from cotrail.evaluation.comparison.intervals import DifferenceInterval, difference_interval
from cotrail.evaluation.comparison.power import questions_needed
from cotrail.evaluation.comparison.sign_flips import sign_flip_test

MARGIN = 0.02
"""The difference of scores that doesn't matter, as a share of the largest possible one."""


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

    @property
    def is_as_good(self) -> bool:
        """Whether it is the best, or shown to be at most `MARGIN` behind."""
        return self.p_value is None or self.most_behind <= MARGIN * self.span

    @property
    def most_behind(self) -> float:
        """How much less it may score than the best, by the upper end of the 95 % interval."""
        if interval := self.interval:
            return interval.high
        # All differences are equal; of questions that have others there is at most this share (the rule of three).
        return self.behind + self.span * min(1.0, 3 / len(self.differences))

    @property
    def needed(self) -> int | None:
        """The number of questions by which a difference like this one would be shown; see `questions_needed`."""
        return questions_needed(self.differences)


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
    together (Holm), and the best is called better with a probability of 5 % at most where all are equal. Of those that
    are about as good the cheapest is taken, or the best where any cost isn't known. span: the largest possible
    difference of two scores.
    """
    ranked = sorted(candidates, key=lambda each: (-each.mean, _costs(each), each.name))
    pairs = list(combinations(ranked, 2))
    corrected = holm([sign_flip_test(_differences(*pair), SEED).p_value for pair in pairs])
    of_best = {pair[1].name: p_value for pair, p_value in zip(pairs, corrected, strict=True) if pair[0] is ranked[0]}
    standings = tuple(_standing(ranked[0], each, of_best.get(each.name), span) for each in ranked)
    good = [each for each in standings if each.is_as_good]
    known = all(each.cost is not None for each in good)
    chosen = min(good, key=_costs) if known else standings[0]
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
