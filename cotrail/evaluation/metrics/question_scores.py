"""Metrics of a question: their definitions, and their means over a run."""

from collections.abc import Iterable
from statistics import fmean

from msgspec import Struct

DEFINITIONS = {
    "answer_em": "share of the answers that equal a published one, both normalized",
    "answer_f1": "mean word overlap of the answer with the nearest published one",
    "tuning_f1": "the same by DROP's rules, as the released code of IRCoT tunes",
    "cover_em": "share of the answers that contain a published one, even inside a word",
    "cover_em_words": "share of the answers that have all words of a published one, in any order",
    "rouge_l": "mean ROUGE-L of the answer with the nearest published one (ELI5)",
    "support_recall": "mean share of a question's gold paragraphs that were collected",
    "support_precision": "mean share of a question's collected paragraphs that are gold",
    "support_f1": "mean harmonic mean of those two",
    "support_em": "share of the questions that collected the gold paragraphs and no others",
    "title_recall": "mean share of a question's gold titles that were collected",
    "answer_support_recall": "mean share of an answer's spans that occur in a collected paragraph",
    "paragraphs_collected": "mean number of paragraphs collected for a question",
}
"""Definitions of the metrics, for a reader; the names are the fields of `QuestionScores`."""

CAVEAT = (
    "EM, F1, precision and recall are means over the questions that publish what they need; a question without an "
    "answer counts 0 for its answer, and for its paragraphs with what it has collected."
)


class QuestionScores(Struct, frozen=True, kw_only=True):
    """Scores of one question; None where the dataset publishes nothing to compare with."""

    answer_em: float | None
    answer_f1: float | None
    tuning_f1: float | None
    cover_em: float | None
    cover_em_words: float | None
    rouge_l: float | None
    support_recall: float | None
    support_precision: float | None
    support_f1: float | None
    support_em: float | None
    title_recall: float | None
    answer_support_recall: float | None
    paragraphs_collected: int


def means(scores: Iterable[QuestionScores]) -> dict[str, float | None]:
    """Mean of each metric over the questions that have it; None where none has."""
    rows = tuple(scores)
    return {name: _mean(getattr(row, name) for row in rows) for name in DEFINITIONS}


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
