"""Traces of questions, also while workers still carry them out."""

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from cotrail.evaluation.metrics.supporting_paragraphs import is_gold as is_gold
from cotrail.models.queries.traces import TracedQuestion as TracedQuestion
from cotrail.models.queries.traces import TracedStep as TracedStep
from cotrail.models.queries.traces import find_question as find_question
from cotrail.models.queries.traces import read_question as read_question
from cotrail.models.queries.traces import read_questions as read_questions
from cotrail.models.schema.database import unanswered
from cotrail.models.schema.states import QuestionStatus as QuestionStatus
from cotrail.models.schema.states import StepState as StepState


def read_growing(engine: Engine, run: str) -> list[TracedQuestion]:
    """A run's questions with what is recorded of them so far; none where the database has just stopped answering."""
    try:
        with engine.connect() as connection:
            return list(read_questions(connection, run))
    except SQLAlchemyError as error:
        if unanswered(error):
            return []
        raise
