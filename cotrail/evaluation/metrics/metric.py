"""A metric of questions as one record, and what metrics are computed from."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import isinf
from typing import Literal

from msgspec import Struct

from cotrail.common.structs import common_fields
from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.data.datasets.spec import Scoring
from cotrail.evaluation.metrics import supporting_paragraphs
from cotrail.evaluation.metrics.answer_scores import AnswerScores, answer_scores

QuestionScores = Mapping[str, float | None]
"""Scores of one question by the names of the metrics; None where the dataset publishes nothing to compare with."""


class ScoredQuestion(Struct, frozen=True, kw_only=True, dict=True):
    """A question as a run left it, with what its dataset publishes of it.

    answer: None of an unfinished question; answers: the published ones.
    collected, gold: paragraphs, the collected ones in the order in which they were found.
    pinned: the passage that the question is about, see `support_scores`.
    stated: the span that an answer of several sentences states, if any: exact match and F1 are its.
    answering: whether the run has answers; an empty one of a run that has none isn't scored.
    searching: whether it searches for paragraphs; one that doesn't has missed none.
    """

    scoring: Scoring
    answer: str | None
    answers: Sequence[str]
    collected: Sequence[Paragraph]
    gold: Sequence[GoldParagraph]
    pinned: GoldParagraph | None = None
    stated: str = ""
    answering: bool = True
    searching: bool = True

    @property
    def written(self) -> str:
        """The whole answer; empty where there is none."""
        return self.answer or ""

    @property
    def short(self) -> str:
        """The answer as short as it is stated."""
        return self.stated or self.written

    @property
    def compared(self) -> Sequence[str]:
        """The published answers that the answer is compared with."""
        return self.answers if self.answering or self.written else ()

    @cached_property
    def agreement(self) -> AnswerScores | None:
        """The agreement with the nearest published answer; None where there is none to compare with."""
        return answer_scores(self.scoring, self.short, self.compared)

    @cached_property
    def paragraphs(self) -> supporting_paragraphs.ComparedParagraphs:
        """The collected and the gold paragraphs as they are compared."""
        return supporting_paragraphs.compared_paragraphs(self.scoring, self.collected, self.gold, self.pinned)

    @cached_property
    def support(self) -> supporting_paragraphs.SupportScores | None:
        """The agreement of collected and gold paragraphs; None where no gold ones are published."""
        return supporting_paragraphs.support_of(self.paragraphs)

    @cached_property
    def judged(self) -> Sequence[supporting_paragraphs.Judged]:
        """The gold paragraphs with the ranks at which they were found."""
        return supporting_paragraphs.judged_of(self.paragraphs)


class MetricFacts(Struct, frozen=True, kw_only=True):
    """What there is to know of a metric, or of what a judge says, apart from how it is computed.

    name: in JSON and in tables of the terminal; title: in figures and on pages; meaning: of the mean, for a reader.
    highest: the best possible value; infinity for a number of things, which is no score. lowest: the worst.
    """

    name: str
    title: str
    meaning: str
    highest: float = 1.0
    lowest: float = 0.0

    @property
    def is_count(self) -> bool:
        """Return whether it is a number of things, and no score."""
        return isinf(self.highest)

    @property
    def span(self) -> float:
        """The largest difference that two values may have."""
        return self.highest - self.lowest

    @property
    def facts(self) -> "MetricFacts":
        """These alone."""
        return MetricFacts(**common_fields(self, MetricFacts))


class Metric(MetricFacts, frozen=True, kw_only=True):
    """A metric of questions; a run's is the mean over those that have it.

    of: what is judged. An unfinished question scores 0 for its answer, and for its paragraphs what they are worth.
    score: its value for a question; None where the dataset publishes nothing to compare with.
    rank: its place among the main metrics, which pages and tables by kind show; None for the others.
    zero_or_one: whether a question scores 0 or 1 and nothing between.
    """

    of: Literal["answer", "paragraphs"]
    score: Callable[[ScoredQuestion], float | None]
    rank: int | None = None
    zero_or_one: bool = False

    def value(self, question: ScoredQuestion) -> float | None:
        """The value for a question, finished or not."""
        if self.of == "paragraphs" and not question.searching:
            return None
        score = self.score(question)
        return 0.0 if self.of == "answer" and question.answer is None and score is not None else score
