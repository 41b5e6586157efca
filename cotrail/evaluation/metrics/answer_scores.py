"""Exact match and F1 of answers, with the arithmetic of the datasets' official evaluation scripts."""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec
from msgspec import Struct

from cotrail.common.answer_normalization import normalized
from cotrail.common.printable_text import few_marks
from cotrail.data.datasets.spec import RuleName, Scoring
from cotrail.faithfulness.tasks import VERDICTS

# Repair of wrongly decoded text (mojibake), which the released code of IRCoT does before every comparison.

_SOUND = re.compile(r"[\t\n\x20-\x25\x27-\x7e]*")


def repaired(text: str) -> str:
    """Apply `ftfy.fix_text`: straight quotes, no HTML entities, no mojibake, and so on.

    Plain ASCII without an ampersand is returned unchanged, which is the same result ten times faster.
    """
    if _SOUND.fullmatch(text):
        return text
    import ftfy  # slow, and seldom needed

    return ftfy.fix_text(few_marks(text))


# Exact match and F1 of an answer, with the precision and the recall that F1 is made of.


class AnswerScores(Struct, frozen=True, kw_only=True, order=True):
    """Agreement of an answer with a published one, each score from 0 to 1; ordered by EM first, then F1, and so on."""

    em: float
    f1: float
    precision: float
    recall: float


NO_OVERLAP = AnswerScores(em=0.0, f1=0.0, precision=0.0, recall=0.0)
FULL_OVERLAP = AnswerScores(em=1.0, f1=1.0, precision=1.0, recall=1.0)

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_LIST_MARKS = str.maketrans("", "", '"[]')
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NUMBERS_BY_NAME = ("nan", "inf", "infinity")
_TOKEN_END = re.compile(r"[ -]")
_MOST_CACHED = 2**15
"""Size of the caches of words: answers share most of theirs."""
_MOST_SPANS = 64
"""Size of the cache of normalized spans: an answer often is a published one."""
_STATED = re.compile(r"\A.* answer is:? (.*)")


class _Match(Struct, frozen=True):
    """Word overlap of two spans."""

    f1: float
    precision: float
    recall: float


_NO_MATCH = _Match(0.0, 0.0, 0.0)


def drop_scores(predicted: Sequence[str], gold: Sequence[str]) -> AnswerScores:
    """Score predicted spans against gold ones; neither may be empty.

    EM: equal sets of spans of equal size. F1: spans are assigned one to one for the highest sum, unassigned ones count
    0; F1, precision and recall are rounded to two decimals, as the script does for each question.
    """
    predictions, golds = list(map(_normalized, predicted)), list(map(_normalized, gold))
    if predictions == golds and len(golds) == 1:
        return FULL_OVERLAP
    table = [[_match(set(span.split()), set(other.split())) for span in predictions] for other in golds]
    paired = _paired(table)
    longest = max(len(predictions), len(golds))
    return AnswerScores(
        em=float(set(predictions) == set(golds) and len(predictions) == len(golds)),
        f1=_mean({row: match.f1 for row, match in paired.items()}, longest),
        precision=_mean({row: match.precision for row, match in paired.items()}, longest),
        recall=_mean({row: match.recall for row, match in paired.items()}, longest),
    )


def predicted_spans(prediction: str) -> tuple[str, ...]:
    """Parse a generated text into spans: a comma-separated list if it begins with [ or ends with ], else one span.

    If a span is a chain of thought, the answer that it states is taken.
    """
    text = prediction.strip()
    is_list = text.startswith("[") or text.endswith("]")
    return tuple(map(_stated, prediction.translate(_LIST_MARKS).split(",") if is_list else [prediction]))


def published_spans(answer: str) -> tuple[str, ...]:
    """The spans of a published answer: those of a JSON list of texts, or the answer itself."""
    if not answer.startswith("["):
        return (answer,)
    try:
        return msgspec.json.decode(answer, type=tuple[str, ...]) or (answer,)
    except (msgspec.DecodeError, RecursionError):
        return (answer,)


def rounded(value: float, digits: int) -> float:
    """Round as numpy does, which differs from `round` for numbers close to a tie, such as 0.005."""
    scale = 10.0**digits
    return round(value * scale) / scale


def _stated(text: str) -> str:
    if text.startswith('"') and text.endswith('"'):
        text = text[1:-1]
    match = _STATED.match(text)
    return match[1].removesuffix(".") if match else text


@lru_cache(maxsize=_MOST_SPANS)
def _normalized(span: str) -> str:
    tokens = map(_normalized_token, _TOKEN_END.split(repaired(span)))
    return " ".join(token for token in tokens if token)


@lru_cache(maxsize=_MOST_CACHED)
def _normalized_token(token: str) -> str:
    lowered = token.lower()
    # The script's order: numbers keep their decimal point and sign; removing punctuation may make a number ("$5").
    word = lowered if _is_number(lowered) else lowered.translate(_PUNCTUATION)
    if _is_number(word):
        word = str(float(word))
    return " ".join(_ARTICLES.sub(" ", word).split())


@lru_cache(maxsize=_MOST_CACHED)
def _is_number(text: str) -> bool:
    if text.isalpha() and text.lower() not in _NUMBERS_BY_NAME:  # most words, and a refusal takes float long
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True


def _match(predicted: set[str], gold: set[str]) -> _Match:
    """Match two spans as bags of words; one of the gold span's numbers must be in the prediction, if it has any.

    As in the script, an empty prediction has precision 1 and an empty gold span has recall 1.
    """
    if predicted and gold and predicted.isdisjoint(gold):
        return _NO_MATCH
    numbers = set(filter(_is_number, gold))
    if numbers and numbers.isdisjoint(predicted):
        return _NO_MATCH
    shared = len(predicted & gold)
    precision = shared / len(predicted) if predicted else 1.0
    recall = shared / len(gold) if gold else 1.0
    if not precision and not recall:
        return _NO_MATCH
    return _Match(2 * precision * recall / (precision + recall), precision, recall)


def _paired(table: Sequence[Sequence[_Match]]) -> dict[int, _Match]:
    """Assign predicted spans (columns) to gold ones (rows) for the highest sum of F1; returns the matches by row."""
    if len(table) == 1:
        return {0: max(table[0], key=lambda match: match.f1)}
    if len(table[0]) == 1:
        row = max(range(len(table)), key=lambda row: table[row][0].f1)
        return {row: table[row][0]}
    # Imported here because scipy takes long to load, and most answers have a single span.
    from scipy.optimize import linear_sum_assignment

    pairs = zip(*linear_sum_assignment([[-match.f1 for match in row] for row in table]), strict=True)
    return {int(row): table[row][column] for row, column in pairs}


def _mean(values: Mapping[int, float], count: int) -> float:
    """The mean of `count` values, those not given being 0, rounded to two decimals.

    The values are put at their places in an array because numpy sums pairwise: the order shows in the last digit.
    """
    if len(values) == 1:
        return rounded(next(iter(values.values())) / count, 2)
    import numpy

    placed = numpy.zeros(count)
    for place, value in values.items():
        placed[place] = value
    return rounded(float(numpy.mean(placed)), 2)


# Exact match and word overlap of two answers, as the official scripts of HotpotQA, MuSiQue and KILT compute them.
#
# The scripts: `hotpot_evaluate_v1.py` (hotpotqa/hotpot), which `2wikimultihop_evaluate_v1.1.py`
# (Alab-NII/2wikimultihop) follows, `evaluate_v1.0.py` (StonyBrookNLP/musique) and `kilt/eval_downstream.py`
# (facebookresearch/KILT).

_VERDICTS = {"yes", "no", "noanswer"}


def hotpotqa_scores(prediction: str, answer: str) -> AnswerScores:
    """HotpotQA's scores: yes, no and noanswer score 0 against anything else, even if they share words."""
    predicted, gold = normalized(prediction), normalized(answer)
    if predicted != gold and not _VERDICTS.isdisjoint((predicted, gold)):
        return NO_OVERLAP
    return _overlap(predicted, gold)


def musique_scores(prediction: str, answer: str) -> AnswerScores:
    """MuSiQue's and SQuAD 2's scores: an answer without words matches another such answer, and nothing else."""
    predicted, gold = normalized(prediction), normalized(answer)
    if not predicted and not gold:
        return FULL_OVERLAP
    return _overlap(predicted, gold)


def kilt_scores(prediction: str, answer: str) -> AnswerScores:
    """KILT's scores: an empty prediction scores 0; other texts without words match exactly and overlap in nothing."""
    return _overlap(normalized(prediction), normalized(answer)) if prediction.strip() else NO_OVERLAP


def _overlap(predicted: str, gold: str) -> AnswerScores:
    if predicted and predicted == gold:
        return FULL_OVERLAP
    em = float(predicted == gold)
    words, gold_words = predicted.split(), gold.split()
    if set(words).isdisjoint(gold_words):
        return AnswerScores(em=em, f1=0.0, precision=0.0, recall=0.0)
    shared = (Counter(words) & Counter(gold_words)).total()
    precision, recall = shared / len(words), shared / len(gold_words)
    return AnswerScores(em=em, f1=2 * precision * recall / (precision + recall), precision=precision, recall=recall)


# Accuracy of answers that are labels: yes/no (StrategyQA), true/false (INFOTABS), FEVER's two or three.


class Accuracy(Struct, frozen=True, kw_only=True):
    """Counts over `of` answers: right ones, and unclear ones, which are neither of the two words.

    Unclear answers are wrong. The adjusted accuracy of the released code of Rethinking with Retrieval counts them half.
    """

    right: int
    unclear: int
    of: int

    @property
    def share(self) -> float:
        """The accuracy, from 0 to 1."""
        return self.right / self.of

    @property
    def adjusted(self) -> float:
        """The adjusted accuracy, from 0 to 1."""
        return (self.right + self.unclear / 2) / self.of


def verdict_scores(prediction: str, answer: str) -> AnswerScores:
    """Score 1 if the prediction is that label, apart from case and punctuation, else 0."""
    return FULL_OVERLAP if normalized(prediction) == normalized(answer) else NO_OVERLAP


def is_unclear(prediction: str, answer: str) -> bool:
    """Return whether the prediction is neither of the two words that answers can be; False for free-text answers."""
    words = next((words for words in VERDICTS.values() if normalized(answer) in words), None)
    return words is not None and normalized(prediction) not in words


def accuracy(judgements: Iterable[tuple[bool, bool]]) -> Accuracy:
    """The accuracy over answers; judgements: for each whether it is right, and whether it is unclear."""
    pairs = tuple(judgements)
    return Accuracy(right=sum(right for right, _ in pairs), unclear=sum(unclear for _, unclear in pairs), of=len(pairs))


ScoringRule = Callable[[str, str], AnswerScores]
"""Scores a prediction against one published answer."""


def answer_scores(scoring: Scoring, prediction: str, answers: Sequence[str]) -> AnswerScores | None:
    """Score a prediction by the best match with any published answer, by the dataset's rule; None without answers.

    Each score is maximised by itself, as the scripts do. By DROP's rules, all scores are those of the single best
    answer instead. The exact match of labels is the accuracy.
    """
    agreement = _RULES[scoring.rule]
    if not answers:
        return None
    scores = [agreement(prediction, answer) for answer in answers]
    if agreement is span_scores or len(scores) == 1:
        return max(scores)
    return AnswerScores(
        **{name: max(getattr(each, name) for each in scores) for name in AnswerScores.__struct_fields__}
    )


def tuning_f1(prediction: str, answers: Sequence[str]) -> float | None:
    """The F1 by which the released code of IRCoT chooses K and M for every dataset: DROP's, on the first answer alone.

    None where no answer is published.
    """
    return span_scores(prediction, answers[0]).f1 if answers else None


def span_scores(prediction: str, answer: str) -> AnswerScores:
    """Score a generated text against a published answer of one or several spans, by DROP's rules."""
    return drop_scores(predicted_spans(prediction), published_spans(answer))


_RULES: dict[RuleName, ScoringRule] = {
    "hotpotqa": hotpotqa_scores,
    "squad": musique_scores,
    "drop": span_scores,
    "kilt": kilt_scores,
    "label": verdict_scores,
}
