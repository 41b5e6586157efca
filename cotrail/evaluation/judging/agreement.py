"""Agreement of judges on the same questions: shares, Cohen's kappa of two, Krippendorff's alpha of all.

Both coefficients are 1 for perfect agreement and 0 for that of chance. Kappa takes each judge's own shares of verdicts
for chance (Cohen 1960), alpha those of all together, and does with missing verdicts (Krippendorff 2011, "Computing
Krippendorff's Alpha-Reliability"); verdicts are nominal.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from msgspec import Struct

from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval, confidence_interval

# Shares of questions, with their intervals.


class Share(Struct, frozen=True, kw_only=True):
    """A share with its exact interval of 95 %; value: None of no questions."""

    value: float | None
    hits: int
    of: int
    interval: ConfidenceInterval | None


def share(hits: Iterable[bool]) -> Share:
    """The share of hits."""
    values = [float(hit) for hit in hits]
    count = round(sum(values))
    return Share(
        value=count / len(values) if values else None, hits=count, of=len(values), interval=confidence_interval(values)
    )


Verdicts = Mapping[str, str]
"""A judge's verdicts by the ids of the questions that it has one on."""

NO_QUESTIONS = "no question has the verdict of both"
ONE_VERDICT = "both give all of them the same verdict, which chance alone would explain"
CONSTANT = "one of them gives all the same verdict, so that the share is that of chance"
PERFECT = "all verdicts agree, which says nothing about an error"


class Kappa(Struct, frozen=True, kw_only=True):
    """Cohen's kappa with its asymptotic 95 % interval (Fleiss, Cohen and Everitt 1969).

    value: None where it is undefined; low, high: None where there is no interval; note: why not, in words.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""


class PairAgreement(Struct, frozen=True, kw_only=True):
    """Agreement of two judges on the questions that have both verdicts; same: the share whose verdicts are the same."""

    first: str
    second: str
    same: Share
    kappa: Kappa


class Agreement(Struct, frozen=True, kw_only=True):
    """Agreement of several judges.

    questions: those with two verdicts or more; unanimous: those of them whose verdicts are all the same.
    alpha: Krippendorff's; None where it is undefined; note: why, in words.
    """

    judges: tuple[str, ...]
    questions: int
    unanimous: int
    alpha: float | None
    note: str
    pairs: tuple[PairAgreement, ...]


def agreement(judges: Mapping[str, Verdicts]) -> Agreement:
    """The agreement of judges, by their names."""
    given = [Counter(verdicts) for verdicts in _by_question(judges) if len(verdicts) > 1]
    alpha, note = _alpha(given)
    return Agreement(
        judges=tuple(judges),
        questions=len(given),
        unanimous=sum(len(verdicts) == 1 for verdicts in given),
        alpha=alpha,
        note=note,
        pairs=tuple(
            pair_agreement(first, second, judges[first], judges[second]) for first, second in combinations(judges, 2)
        ),
    )


def pair_agreement(first: str, second: str, ours: Verdicts, theirs: Verdicts) -> PairAgreement:
    """The agreement of two judges of these names."""
    pairs = [(verdict, theirs[question]) for question, verdict in ours.items() if question in theirs]
    same = share(one == other for one, other in pairs)
    return PairAgreement(first=first, second=second, same=same, kappa=cohens_kappa(pairs))


def cohens_kappa(pairs: Sequence[tuple[str, str]]) -> Kappa:
    """Cohen's kappa over questions, each with the verdicts of both judges."""
    verdicts = sorted({verdict for pair in pairs for verdict in pair})
    if not pairs:
        return Kappa(note=NO_QUESTIONS)
    if len(verdicts) == 1:
        return Kappa(note=ONE_VERDICT)
    if all(one == other for one, other in pairs):
        return Kappa(value=1.0, note=PERFECT)
    if any(len(set(verdicts)) == 1 for verdicts in zip(*pairs, strict=True)):
        return Kappa(value=0.0, note=CONSTANT)
    from statsmodels.stats.inter_rater import cohens_kappa

    counts = Counter(pairs)
    found = cohens_kappa([[counts[one, other] for other in verdicts] for one in verdicts])
    low, high = max(-1.0, float(found.kappa_low)), min(1.0, float(found.kappa_upp))
    return Kappa(value=float(found.kappa), low=low, high=high)


def _by_question(judges: Mapping[str, Verdicts]) -> list[list[str]]:
    """The verdicts on each question that any judge has one on."""
    questions = dict.fromkeys(question for verdicts in judges.values() for question in verdicts)
    return [[of[question] for of in judges.values() if question in of] for question in questions]


def _alpha(given: Sequence[Counter[str]]) -> tuple[float | None, str]:
    """Krippendorff's alpha from the number of each verdict on questions with two or more; else why there is none."""
    verdicts = sorted({verdict for each in given for verdict in each})
    if not given:
        return None, "no question has two verdicts"
    if len(verdicts) == 1:
        return None, "all verdicts are the same, which chance alone would explain"
    import krippendorff

    counts = [[each[verdict] for verdict in verdicts] for each in given]
    return float(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal")), ""
