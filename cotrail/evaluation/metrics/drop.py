"""Agreement of answers of one or several spans by DROP's rules, which IIRC takes over.

The arithmetic is that of `metrics/drop_answer_em_f1.py` and `metrics/drop_eval.py` in the released code of IRCoT
(StonyBrookNLP/ircot); how a generated text becomes spans is that of its `evaluate.py`.
"""

import re
import string
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from cotrail.evaluation.metrics.text_repair import repaired
from cotrail.evaluation.metrics.word_overlap import AnswerScores

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_LIST_MARKS = str.maketrans("", "", '"[]')
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_TOKEN_END = re.compile(r"[ -]")
_STATED = re.compile(r".* answer is:? (.*)")


class _Match(Struct, frozen=True):
    """How far the words of two spans overlap."""

    f1: float
    precision: float
    recall: float


_NO_MATCH = _Match(0.0, 0.0, 0.0)


def drop_scores(predicted: Sequence[str], gold: Sequence[str]) -> AnswerScores:
    """How well spans agree with the published ones; neither may be empty.

    EM: the same spans, and as many. F1: spans are paired one to one for the highest sum, and what is left over counts
    0; its mean, precision and recall are rounded to two decimals, as the script does for each question.
    """
    found, wanted = [_normalized(each) for each in predicted], [_normalized(each) for each in gold]
    table = [[_match(set(span.split()), set(other.split())) for span in found] for other in wanted]
    paired = _paired(table)
    longest = max(len(found), len(wanted))
    return AnswerScores(
        em=float(set(found) == set(wanted) and len(found) == len(wanted)),
        f1=_mean({row: match.f1 for row, match in paired.items()}, longest),
        precision=_mean({row: match.precision for row, match in paired.items()}, longest),
        recall=_mean({row: match.recall for row, match in paired.items()}, longest),
    )


def predicted_spans(prediction: str) -> tuple[str, ...]:
    """The spans of a generated text: it is a list, with commas between the spans, if it begins with [ or ends with ].

    Where a span still is a chain of thought, the answer that it states is taken.
    """
    text = prediction.strip()
    is_list = text.startswith("[") or text.endswith("]")
    return tuple(map(_stated, prediction.translate(_LIST_MARKS).split(",") if is_list else [prediction]))


def published_spans(answer: str) -> tuple[str, ...]:
    """The spans of a published answer: those of a JSON list of texts, or the answer as it stands."""
    if not answer.startswith("["):
        return (answer,)
    try:
        return msgspec.json.decode(answer, type=tuple[str, ...]) or (answer,)
    except (msgspec.DecodeError, RecursionError):
        return (answer,)


def rounded(value: float, digits: int) -> float:
    """Rounded as numpy does it, which for numbers near the middle differs from `round`."""
    scale = 10.0**digits
    return round(value * scale) / scale


def _stated(text: str) -> str:
    if text.startswith('"') and text.endswith('"'):
        text = text[1:-1]
    match = _STATED.match(text)
    return match[1].removesuffix(".") if match else text


def _normalized(span: str) -> str:
    tokens = map(_normalized_token, _TOKEN_END.split(repaired(span)))
    return " ".join(token for token in tokens if token)


def _normalized_token(token: str) -> str:
    lowered = token.lower()
    word = lowered if _is_number(lowered) else lowered.translate(_PUNCTUATION)
    if _is_number(word):
        word = str(float(word))
    return " ".join(_ARTICLES.sub(" ", word).split())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _match(predicted: set[str], gold: set[str]) -> _Match:
    """A span without words has full precision, or full recall; numbers in the gold span must be met by one of them."""
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
    """The match of each gold span (a row) that is paired with a predicted one (a column), for the highest sum of F1."""
    if len(table) == 1:
        return {0: max(table[0], key=lambda match: match.f1)}
    if len(table[0]) == 1:
        row = max(range(len(table)), key=lambda row: table[row][0].f1)
        return {row: table[row][0]}
    from scipy.optimize import linear_sum_assignment

    pairs = zip(*linear_sum_assignment([[-match.f1 for match in row] for row in table]), strict=True)
    return {int(row): table[row][column] for row, column in pairs}


def _mean(values: Mapping[int, float], count: int) -> float:
    """The mean of `count` values at their places, those not given being 0, rounded to two decimals."""
    if len(values) == 1:
        return rounded(next(iter(values.values())) / count, 2)
    import numpy

    placed = numpy.zeros(count)
    for place, value in values.items():
        placed[place] = value
    return rounded(float(numpy.mean(placed)), 2)  # numpy adds in an order of its own, which shows in the last digit
