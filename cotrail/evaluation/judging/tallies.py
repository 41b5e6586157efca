"""What a judge's verdicts come to: how many there are of each, and the mean of their scores with its interval.

How far judges agree with each other.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.humanize import largest_first
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval, confidence_interval
from cotrail.systems.judge.rubric import Judgement, Rubric
from cotrail.systems.judge.system import CONTRADICTED, FAITHFUL, NO_CLAIMS, PARTLY, UNFAITHFUL


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


PREFERENCES = {"win": 1.0, "tie": 0.5, "loss": 0.0}
"""The scores of a run's own answer in a preference."""


def scores_of(rubric: Rubric) -> Mapping[str, float]:
    """The scores of the verdicts on answers by a rubric, the least where answers of the same verdict differ."""
    match rubric.asks:
        case "answer":
            return rubric.scores
        case "claims":
            return dict.fromkeys((FAITHFUL, PARTLY, UNFAITHFUL, CONTRADICTED, NO_CLAIMS), 0.0) | {FAITHFUL: 1.0}
        case "pair":
            return PREFERENCES


class Graded(Struct, frozen=True, kw_only=True):
    """A question of a judged run; judgement: None where the judge has none, be it under way, failed or not asked.

    unanswered: what a question counts that the run never answered; None where it has an answer.
    """

    kinds: Mapping[str, str]
    judgement: Judgement | None
    unanswered: float | None = None

    @property
    def score(self) -> float | None:
        """What it counts; None where an answer has no verdict."""
        return self.unanswered if self.judgement is None else self.judgement.score


class Tally(Struct, frozen=True, kw_only=True):
    """Verdicts over questions.

    questions: those that the mean is over: the judged ones, and those that the run never answered.
    without: others without a verdict, which count nowhere. verdicts: their shares of the judged ones.
    mean: None without questions; interval: of 95 %, None where all scores are the same and neither 0 nor 1.
    least, most: the mean over those without a verdict, too, if each of them had the worst score of the rubric's, or the
        best one; None without any question.
    """

    questions: int
    judged: int
    unanswered: int
    without: int
    verdicts: Mapping[str, Share]
    mean: float | None
    interval: ConfidenceInterval | None
    least: float | None
    most: float | None


class ClaimTally(Struct, frozen=True, kw_only=True):
    """Claims of all answers: supported by a paragraph that is cited; contradicted; neither.

    cited: those that the judge named a paragraph for, be it for or against them.
    """

    answers: int
    claims: int
    supported: int
    contradicted: int
    unsupported: int
    cited: int


def tally(questions: Iterable[Graded], scores: Mapping[str, float]) -> Tally:
    """The verdicts on these questions by a rubric with these scores."""
    questions = tuple(questions)
    said = [each.judgement.verdict for each in questions if each.judgement]
    known = [score for each in questions if (score := each.score) is not None]
    without, worst, best = len(questions) - len(known), min(scores.values()), max(scores.values())
    return Tally(
        questions=len(known),
        judged=len(said),
        unanswered=len(known) - len(said),
        without=without,
        verdicts={verdict: share(each == verdict for each in said) for verdict in scores},
        mean=fmean(known) if known else None,
        interval=confidence_interval(known, best, worst),
        least=fmean([*known, *[worst] * without]) if questions else None,
        most=fmean([*known, *[best] * without]) if questions else None,
    )


def tallies_by_kind(questions: Iterable[Graded], scores: Mapping[str, float]) -> dict[str, dict[str, Tally]]:
    """The same for each kind of questions, those of most questions first, by the name of that sort of kinds."""
    parts: dict[str, dict[str, list[Graded]]] = defaultdict(lambda: defaultdict(list))
    for question in questions:
        for name, kind in question.kinds.items():
            parts[name][kind].append(question)
    return {name: {kind: tally(of[kind], scores) for kind in largest_first(of)} for name, of in parts.items()}


def seen_by(judgement: Judgement, place: int) -> Judgement:
    """A preference as the run sees it whose answer is the first (0) or the second (1)."""
    score = judgement.score if place == 0 else 1 - judgement.score
    verdict = next(name for name, value in PREFERENCES.items() if value == score)
    return replace(judgement, verdict=verdict, score=score)


def consistency(judgements: Iterable[Judgement]) -> Share:
    """The share of preferences to which both orders of the answers lead; the others are ties."""
    return share(each.consistent is True for each in judgements)


def claims(judgements: Sequence[Judgement], scores: Mapping[str, float]) -> ClaimTally:
    """The claims that a judge went through; scores: of the verdicts on claims."""
    found = [claim for each in judgements for claim in each.claims]
    supported = sum(scores[claim.verdict] == 1 and bool(claim.cited) for claim in found)
    contradicted = sum(scores[claim.verdict] < 0 for claim in found)
    return ClaimTally(
        answers=len(judgements),
        claims=len(found),
        supported=supported,
        contradicted=contradicted,
        unsupported=len(found) - supported - contradicted,
        cited=sum(bool(claim.cited) for claim in found),
    )
