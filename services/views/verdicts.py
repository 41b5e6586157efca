"""Whether a question's answer is right."""

from typing import Literal

from msgspec import Struct

from cotrail.evaluation.metrics.scores import QuestionScores
from cotrail.models.queries.traces import TracedQuestion
from cotrail.models.schema.states import QuestionStatus
from cotrail.systems.searchain.tree import Tree

Verdict = Literal["right", "wrong", "unscored", "unfinished"]
"""Of an answer; `unscored`: nothing published says whether it is right; `unfinished`: there is no answer (yet)."""


def verdict_of(question: TracedQuestion, details: Struct | None, scores: QuestionScores) -> Verdict:
    """The verdict by exact match or accuracy; details: of the answer, in the type that the system names."""
    # The final content of a tree has the answer among other words.
    agreement = scores["cover_em"] if isinstance(details, Tree) else scores["answer_em"]
    if question.status != QuestionStatus.FINISHED:
        return "unfinished"
    if agreement is None:
        return "unscored"
    return "right" if agreement == 1 else "wrong"
