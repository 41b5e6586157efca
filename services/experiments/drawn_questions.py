"""Test questions of an experiment that has no development questions."""

from pathlib import Path

from cotrail.core.questions import Question
from cotrail.data.datasets.annotated import ParagraphLookup
from cotrail.data.datasets.loading import load_questions
from cotrail.data.datasets.sampling import sample_questions
from cotrail.errors import InputError


def draw_questions(
    format_: str, path: Path, lookup: ParagraphLookup | None, *, count: int | None, seed: int
) -> tuple[Question, ...]:
    """As many of a file's questions as are asked for, drawn by the seed; all if `count` is None.

    lookup: see `load_questions`. InputError where one has no published answer.
    """
    questions = load_questions(format_, path, lookup)
    if unanswered := [question.id for question in questions if not question.answers]:
        raise InputError(f"{path}: the question {unanswered[0]!r} has no answer to compare with; add it")
    return questions if count is None else sample_questions(questions, 0, count, seed)[1]
