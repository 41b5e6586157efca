"""What a judge's verdicts come to: how many there are of each, and the mean of their scores with its interval."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from cotrail.evaluation.judging.agreement import Share, share
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval, confidence_interval
from cotrail.systems.judge.judgement import Judgement
from cotrail.systems.judge.rubric import Rubric
from cotrail.systems.judge.system import CONTRADICTED, FAITHFUL, NO_CLAIMS, PARTLY, UNFAITHFUL

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
    return {name: {kind: tally(of[kind], scores) for kind in _by_size(of)} for name, of in parts.items()}


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


def _by_size(parts: Mapping[str, Sequence[Graded]]) -> list[str]:
    return sorted(parts, key=lambda kind: (-len(parts[kind]), kind))
