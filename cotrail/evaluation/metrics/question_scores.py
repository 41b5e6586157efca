"""Metrics of a question: their definitions, and their means over a run and over its kinds of questions."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from statistics import fmean

from msgspec import Struct

from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval, confidence_interval

DEFINITIONS = {
    "answer_em": "share of the answers that equal a published one, both normalized",
    "answer_f1": "mean word overlap of the answer with the nearest published one",
    "tuning_f1": "the same by DROP's rules, as the released code of IRCoT tunes",
    "cover_em": "share of the answers that contain a published one, even inside a word",
    "cover_em_words": "share of the answers that have all words of a published one, in any order",
    "rouge_l": "mean ROUGE-L of the answer with the nearest published one (ELI5)",
    "paragraph_recall": "mean share of a question's gold paragraphs that were collected",
    "paragraph_precision": "mean share of a question's collected paragraphs that are gold",
    "paragraph_f1": "mean harmonic mean of those two",
    "paragraph_em": "share of the questions that collected the gold paragraphs and no others",
    "title_recall": "mean share of a question's gold titles that were collected",
    "answer_support_recall": "mean share of an answer's spans that occur in a collected paragraph",
    "paragraphs_collected": "mean number of paragraphs collected for a question",
}
"""Definitions of the metrics, for a reader; the names are the fields of `QuestionScores`."""

TITLES = {
    "answer_em": "Answer EM",
    "answer_f1": "Answer F1",
    "tuning_f1": "Answer F1 (DROP)",
    "cover_em": "Cover EM",
    "cover_em_words": "Cover EM (words)",
    "rouge_l": "ROUGE-L",
    "paragraph_recall": "Paragraph recall",
    "paragraph_precision": "Paragraph precision",
    "paragraph_f1": "Paragraph F1",
    "paragraph_em": "Paragraph EM",
    "title_recall": "Title recall",
    "answer_support_recall": "Answer-support recall",
    "paragraphs_collected": "Paragraphs collected",
}
"""Names of the metrics in tables, figures and pages."""

COUNTS = frozenset({"paragraphs_collected"})
"""The metrics that aren't scores from 0 to 1."""

CAVEAT = (
    "EM, F1, precision and recall are means over the questions that publish what they need; a question without an "
    "answer counts 0 for its answer, and for its paragraphs with what it has collected. The 95 % confidence intervals "
    "are over questions: Wilson's where each scores 0 or 1, Student's t otherwise, and none where all have the same "
    "other score."
)


class QuestionScores(Struct, frozen=True, kw_only=True):
    """Scores of one question; None where the dataset publishes nothing to compare with."""

    answer_em: float | None
    answer_f1: float | None
    tuning_f1: float | None
    cover_em: float | None
    cover_em_words: float | None
    rouge_l: float | None
    paragraph_recall: float | None
    paragraph_precision: float | None
    paragraph_f1: float | None
    paragraph_em: float | None
    title_recall: float | None
    answer_support_recall: float | None
    paragraphs_collected: int


class MeanScores(Struct, frozen=True, kw_only=True):
    """Mean of each metric over the questions that have it, with its confidence interval; None where there is none."""

    questions: int
    metrics: dict[str, float | None]
    intervals: dict[str, ConfidenceInterval | None]


class KindedScores(Struct, frozen=True, kw_only=True):
    """Scores of a question of these kinds, by name."""

    kinds: Mapping[str, str]
    scores: QuestionScores


def mean_scores(scores: Sequence[QuestionScores]) -> MeanScores:
    """The means over these questions."""
    known = {name: _known(getattr(row, name) for row in scores) for name in DEFINITIONS}
    return MeanScores(
        questions=len(scores),
        metrics={name: fmean(values) if values else None for name, values in known.items()},
        intervals={name: confidence_interval(values, inf if name in COUNTS else 1) for name, values in known.items()},
    )


def scores_by_kind(scored: Iterable[KindedScores]) -> dict[str, dict[str, MeanScores]]:
    """The means over the questions of each kind, those of most questions first, by the name of that sort of kinds."""
    parts: dict[str, dict[str, list[QuestionScores]]] = defaultdict(lambda: defaultdict(list))
    for question in scored:
        for name, kind in question.kinds.items():
            parts[name][kind].append(question.scores)
    return {name: {kind: mean_scores(of[kind]) for kind in _by_size(of)} for name, of in parts.items()}


def _by_size(parts: Mapping[str, Sequence[QuestionScores]]) -> list[str]:
    return sorted(parts, key=lambda kind: (-len(parts[kind]), kind))


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
