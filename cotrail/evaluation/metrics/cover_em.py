"""Cover exact match (cover-EM): whether an answer contains a published one, both normalized.

Two definitions are in use, and they differ in both directions. By substring, "no" is in "I know" and "red fox" isn't in
"the fox is red"; by words, it is the other way round.
"""

from collections.abc import Callable, Sequence
from operator import contains

from cotrail.common.answer_normalization import normalized
from cotrail.evaluation.metrics.drop import published_spans

Covers = Callable[[str, str], bool]
"""Says whether a prediction covers a published span, both normalized; the span has a word at least."""


def cover_em(prediction: str, answers: Sequence[str]) -> float | None:
    """1 if a published answer is a substring of the prediction, else 0; None where none is published.

    The metric of Search-in-the-Chain (section 4.1) and of Self-Ask, and FlashRAG's `acc`. Here an answer of several
    spans (IIRC) must be covered in all of them, and one without words is covered by a prediction without words alone.
    """
    return _covered(contains, prediction, answers)


def cover_em_words(prediction: str, answers: Sequence[str]) -> float | None:
    """1 if the prediction has all words of a published answer, in any order, else 0; None where none is published.

    The accuracy of UltraRAG and of R1-Searcher (its ACC_R). Several spans, and none, as in `cover_em`.
    """
    return _covered(_has_words, prediction, answers)


def _covered(covers: Covers, prediction: str, answers: Sequence[str]) -> float | None:
    if not answers:
        return None
    said = normalized(prediction)
    spans_of = (map(normalized, published_spans(answer)) for answer in answers)
    return float(any(all(covers(said, span) if span else not said for span in spans) for spans in spans_of))


def _has_words(prediction: str, span: str) -> bool:
    return set(span.split()) <= set(prediction.split())
