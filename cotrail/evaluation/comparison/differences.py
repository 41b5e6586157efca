"""Differences between systems on the same questions, in families of comparisons that are made together.

With a number of questions that was fixed beforehand, a test of the mean difference says whether one is shown. It takes
the differences for no more than independent draws between the worst and the best possible one
(`cotrail.evaluation.metrics.bounded_means`), so it holds for rare and for lopsided ones; of scores of 0 and 1 it is
McNemar's exact test. Of m comparisons each is made at the level alpha / m (Bonferroni): then the probability that any
of them calls equal systems different is alpha at most, and the probability that all intervals, of the level
1 - alpha / m, have the true differences in them is 1 - alpha at least. A difference is shown where its interval leaves
0 out.

Where questions are still open, or a rule, a budget or a person ended a run early, that promise is broken, as the data
decides how many there are. There the intervals are those of a confidence sequence, which keeps it at every stop.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from math import ceil, isinf, sqrt
from statistics import NormalDist, fmean, stdev
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cotrail.evaluation.metrics import confidence_intervals
from cotrail.evaluation.metrics.bounded_means import counted, mean_p_value, student_t_tail

ALPHA = 0.05
"""The probability, over a family of comparisons, of calling equal systems different."""

Verdict = Literal["better", "worse", "more", "fewer", "undecided"]

Finding = Literal["shown", "too small", "not shown", "unknown"]
"""Of a difference: shown and as large as matters; shown, but too small for that; not shown; without any question."""


class Demands(Struct, frozen=True, kw_only=True):
    """What is asked of a comparison.

    alpha: how often, at most, equal systems may be called different, over all comparisons that are made together.
    least: the mean difference below which one doesn't matter.
    """

    alpha: float = ALPHA
    least: float = 0.0


JUST_OFF_ZERO = 1e-9
"""Where an interval ends that leaves 0 out by a hair."""

USUAL = Demands()
"""What is asked of a comparison that no plan has."""


class Reach(Struct, frozen=True, kw_only=True):
    """How far a run is.

    ended: whether each of its questions has an answer or failed, by id, in the order in which they are asked.
    until: the rule by which it stops asking questions, empty where it has none.
    """

    ended: Mapping[str, bool]
    until: str = ""

    @property
    def is_fixed(self) -> bool:
        """Return whether its number of questions was fixed beforehand: all have ended, and no rule stopped it."""
        return all(self.ended.values()) and not self.until


class ComparedQuestions(Struct, frozen=True, kw_only=True):
    """The questions that runs are compared on.

    keys: their ids, in the order in which the last of the runs that aren't fixed came to each, in that of the first run
        where all are; left_out: how many shared ones aren't compared, since one before them, or they themselves,
        haven't ended in every run.
    is_fixed: whether their number was fixed beforehand; otherwise nothing but what holds at every stop can be said.
    """

    keys: tuple[str, ...]
    left_out: int
    is_fixed: bool


def compared_questions(runs: Sequence[Reach]) -> ComparedQuestions:
    """The longest beginning of the questions that all of these runs have, at least one, which has ended in every run.

    Runs that stop by a rule have random orders, each by its seed. How far they got depends on the questions, but in
    which order these become comparable doesn't, so that what holds at every stop of one order holds in this one.
    """
    first, *others = (run.ended for run in runs)
    shared = {key: None for key in first if all(key in other for other in others)}
    orders = [filter(shared.__contains__, run.ended) for run in runs if not run.is_fixed]
    ranks = [{key: rank for rank, key in enumerate(order)} for order in orders]
    ordered = sorted(shared, key=lambda key: max((of[key] for of in ranks), default=0))
    keys = tuple(takewhile(lambda key: all(run.ended[key] for run in runs), ordered))
    return ComparedQuestions(keys=keys, left_out=len(shared) - len(keys), is_fixed=not orders)


class DifferenceInterval(Struct, frozen=True, kw_only=True):
    """An interval of a mean difference.

    level: the probability with which such an interval has the mean difference of all such questions in it.
    method: `empirical-bernstein` holds at every stop (`cotrail.evaluation.metrics.confidence_intervals`).
    """

    low: float
    high: float
    level: float
    method: confidence_intervals.Method

    @property
    def side(self) -> float:
        """The end that is nearest to 0, and 0 where that is within the interval."""
        return max(self.low, 0.0) + min(self.high, 0.0)

    def mirrored(self) -> "DifferenceInterval":
        """The interval of the difference the other way round."""
        return DifferenceInterval(low=0.0 - self.high, high=0.0 - self.low, level=self.level, method=self.method)


class DifferenceTest(Struct, frozen=True, kw_only=True):
    """A two-sided p-value: the probability of a difference at least this large if the systems were equal.

    method: `mcnemar` where all scores are the best or the worst possible, `gaffke` for others; `student-t` for numbers
    of things, which have no bound.
    """

    p_value: float
    method: Literal["mcnemar", "gaffke", "student-t"]


class Difference(Struct, frozen=True, kw_only=True):
    """The mean difference of a metric between two systems; positive where the first has more.

    interval: at the level of this comparison among those made together.
    test: None where the number of questions wasn't fixed, and where there are none.
    corrected: its p-value, corrected for the comparisons made together.
    needed: the number of questions that would have been needed to show this difference; see `questions_needed`.
    demands: what is asked of it. shown: whether there is a difference, be it as small as it may.
    verdict: whether the first system is shown to have more, or less, by what matters, or neither; `more` and `fewer` of
        numbers of things, of which neither is better.
    """

    questions: int
    mean: float | None
    interval: DifferenceInterval | None
    test: DifferenceTest | None
    corrected: float | None
    needed: int | None
    demands: Demands
    shown: bool
    verdict: Verdict

    @property
    def matters(self) -> bool:
        """Whether the difference that was seen is as large as the least that matters."""
        return _matters(self.mean, self.demands)

    @property
    def finding(self) -> Finding:
        """What is found, which sentences, tables and figures all go by."""
        if not self.questions:
            return "unknown"
        if not self.shown:
            return "not shown"
        return "shown" if self.matters else "too small"


def differences_of(
    family: Sequence[Sequence[float]], span: float, demands: Sequence[Demands] = (), *, is_fixed: bool
) -> list[Difference]:
    """Compare by these differences, as their number was fixed beforehand or wasn't; see the two that follow."""
    return (fixed_differences if is_fixed else anytime_differences)(family, span, demands)


def fixed_differences(
    family: Sequence[Sequence[float]], span: float, demands: Sequence[Demands] = ()
) -> list[Difference]:
    """Compare by these differences, one sequence a comparison, for a number of questions that was fixed beforehand.

    span: the largest possible difference; infinity for numbers of things. demands: of each comparison, the usual ones
    by default.
    """
    made, found = max(1, sum(map(bool, family))), []
    for differences, asked in zip(family, demands or [USUAL] * len(family), strict=True):
        test, alpha = difference_test(differences, span), asked.alpha / made
        interval = _agreeing(difference_interval(differences, span, 1 - alpha), test, alpha)
        found.append(_difference(differences, span, asked, made, interval, test))
    return found


def anytime_differences(
    family: Sequence[Sequence[float]], span: float, demands: Sequence[Demands] = ()
) -> list[Difference]:
    """Compare by these differences, in the order in which their questions were drawn, at any stop.

    span, demands: as above; numbers of things have no interval then.
    """
    made, found = max(1, len(family)), []
    for differences, asked in zip(family, demands or [USUAL] * len(family), strict=True):
        interval = None if isinf(span) else anytime_interval(differences, span, 1 - asked.alpha / made)
        found.append(_difference(differences, span, asked, made, interval, None))
    return found


def difference_interval(differences: Sequence[float], span: float, level: float = 0.95) -> DifferenceInterval | None:
    """The interval for a number of questions that was fixed beforehand.

    span: the largest possible difference, the best possible score less the worst. None without differences, and for
    numbers of things that all differ alike.
    """
    return _interval(confidence_intervals.confidence_interval(differences, span, -span, level), level)


def anytime_interval(differences: Sequence[float], span: float, level: float = 0.95) -> DifferenceInterval | None:
    """The interval that holds at every stop, of differences in the order in which their questions were drawn.

    span: see `difference_interval`. None without differences.
    """
    return _interval(
        confidence_intervals.confidence_sequence(differences, highest=span, lowest=-span, level=level), level
    )


def difference_test(differences: Sequence[float], span: float) -> DifferenceTest | None:
    """Test whether the mean of these differences is 0; None without any. span: see `difference_interval`."""
    if not differences:
        return None
    if not isinf(span):
        points = counted(differences)
        exact = points.keys() <= {-span, 0.0, span}
        return DifferenceTest(p_value=mean_p_value(points, -span, span), method="mcnemar" if exact else "gaffke")
    count, mean = len(differences), mean_difference(differences)
    spread = stdev(differences) if count > 1 else 0.0
    if spread < confidence_intervals.ALIKE:  # then their signs say all that there is to say
        return DifferenceTest(p_value=min(1.0, 2.0 ** (1 - count)) if mean else 1.0, method="student-t")
    tail = student_t_tail(abs(mean) * sqrt(count) / spread, count - 1)
    return DifferenceTest(p_value=min(1.0, 2 * tail), method="student-t")


def _difference(
    differences: Sequence[float],
    span: float,
    demands: Demands,
    made: int,
    interval: DifferenceInterval | None,
    test: DifferenceTest | None,
) -> Difference:
    """What these differences come to; made: how many comparisons are made together."""
    mean = mean_difference(differences) if differences else None
    corrected = None if test is None else min(1.0, test.p_value * made)
    side = interval.side if interval else 0.0
    if corrected is not None:
        side = mean if mean and corrected <= demands.alpha else 0.0
    return Difference(
        questions=len(differences),
        mean=mean,
        interval=interval,
        test=test,
        corrected=corrected,
        needed=questions_needed(differences, demands.alpha / made),
        demands=demands,
        shown=side != 0,
        verdict=_verdict(side, span) if _matters(mean, demands) else "undecided",
    )


def _agreeing(
    interval: DifferenceInterval | None, test: DifferenceTest | None, alpha: float
) -> DifferenceInterval | None:
    """The interval that leaves 0 out where the test does: one may be exact where the other is but nearly so."""
    if interval is None or test is None or (test.p_value <= alpha) == (interval.side != 0):
        return interval
    if interval.side:
        return replace(interval, low=min(interval.low, 0.0), high=max(interval.high, 0.0))
    if -interval.low < interval.high:
        return replace(interval, low=JUST_OFF_ZERO)
    return replace(interval, high=-JUST_OFF_ZERO)


def _verdict(side: float, span: float) -> Verdict:
    if not side:
        return "undecided"
    if isinf(span):
        return "more" if side > 0 else "fewer"
    return "better" if side > 0 else "worse"


def _matters(mean: float | None, demands: Demands) -> bool:
    return abs(mean or 0.0) > demands.least - confidence_intervals.ALIKE


def _interval(found: confidence_intervals.ConfidenceInterval | None, level: float) -> DifferenceInterval | None:
    if found is None:
        return None
    return DifferenceInterval(low=found.low, high=found.high, level=level, method=found.method)


# The mean of differences, and the number of questions that it would have needed to be shown.

POWER = 0.8
"""The probability of showing a difference that there is; `ALPHA` is that of showing one where there is none."""

LEAST_QUESTIONS = 2

_EQUAL = 1e-12
"""A mean difference below this is but rounding."""

_ALIKE = 1e-9
"""The same of a spread."""

_LARGE = 20.0
"""A mean of as many deviations is shown by the fewest questions; more is beyond what can be computed."""

_MANY = 10_000
"""From so many questions on, Student's t is the normal distribution as far as these numbers go."""


def mean_difference(differences: Sequence[float]) -> float:
    """The mean of at least one difference: 0 where wins and losses sum to nothing, whatever the last bits say."""
    mean = fmean(differences)
    return 0.0 if abs(mean) < _EQUAL else mean


def questions_needed(differences: Sequence[float], alpha: float = ALPHA) -> int | None:
    """The number of questions by which a paired t-test shows a mean difference like this one, spread like these.

    It shows it with the probability `POWER` at the level `alpha` (Cohen 1988, "Statistical Power Analysis", chapter 2).
    None where the mean is 0, which no number of questions shows, and where the spread isn't known: all are equal.
    """
    if len(differences) < LEAST_QUESTIONS or not (mean := mean_difference(differences)):
        return None
    if (spread := stdev(differences)) < _ALIKE:
        return None
    effect, normal = min(abs(mean) / spread, _LARGE), NormalDist()
    number = max(LEAST_QUESTIONS, ceil(((normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(POWER)) / effect) ** 2))
    if number >= _MANY:
        return number
    from scipy import stats

    # A t-test needs a few more than a test that knows the spread. Statsmodels' solver finds none for large effects,
    # and NaN for small ones.
    while stats.nct.sf(stats.t.isf(alpha / 2, number - 1), number - 1, effect * number**0.5) < POWER:
        number += 1
    return number
