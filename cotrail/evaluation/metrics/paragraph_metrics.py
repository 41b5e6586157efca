"""The metrics of the paragraphs that were collected for a question."""

from collections.abc import Callable
from math import inf

from cotrail.evaluation.metrics.metric import Metric, ScoredQuestion
from cotrail.evaluation.metrics.supporting_paragraphs import SupportScores, answer_support_recall


def _agreement(part: Callable[[SupportScores], float | None]) -> Callable[[ScoredQuestion], float | None]:
    return lambda question: None if question.support is None else part(question.support)


METRICS = (
    Metric(
        name="paragraph_recall",
        title="Paragraph recall",
        meaning="mean share of a question's gold paragraphs that were collected",
        of="paragraphs",
        score=_agreement(lambda support: support.recall),
        rank=4,
    ),
    Metric(
        name="paragraph_precision",
        title="Paragraph precision",
        meaning="mean share of a question's collected paragraphs that are gold",
        of="paragraphs",
        score=_agreement(lambda support: support.precision),
    ),
    Metric(
        name="paragraph_f1",
        title="Paragraph F1",
        meaning="mean harmonic mean of those two",
        of="paragraphs",
        score=_agreement(lambda support: support.f1),
    ),
    Metric(
        name="paragraph_em",
        title="Paragraph EM",
        meaning="share of the questions that collected the gold paragraphs and no others",
        of="paragraphs",
        score=_agreement(lambda support: support.em),
        zero_or_one=True,
    ),
    Metric(
        name="title_recall",
        title="Title recall",
        meaning="mean share of a question's gold titles that were collected",
        of="paragraphs",
        score=_agreement(lambda support: support.title_recall),
    ),
    Metric(
        name="answer_support_recall",
        title="Answer-support recall",
        meaning="mean share of an answer's spans that occur in a collected paragraph",
        of="paragraphs",
        score=lambda question: answer_support_recall(question.collected, question.answers),
    ),
    Metric(
        name="paragraphs_collected",
        title="Paragraphs collected",
        meaning="mean number of paragraphs collected for a question",
        of="paragraphs",
        score=lambda question: len(question.collected),
        highest=inf,
        rank=6,
    ),
)
