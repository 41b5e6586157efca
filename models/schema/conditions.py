"""Conditions that statements over steps have in common."""

from sqlalchemy import ColumnElement, and_, select

from models.schema.states import QuestionStatus, RunState
from models.schema.tables import questions, runs, steps

# Scalar subqueries rather than joins: given a join, the planner may begin with all open questions, or with all steps of
# a run or a question, and read thousands of rows to find a few.
_status = select(questions.c.status).where(questions.c.id == steps.c.question_id).scalar_subquery()
_run_state = select(runs.c.state).where(runs.c.id == steps.c.run_id).scalar_subquery()

QUESTION_OPEN: ColumnElement[bool] = _status == QuestionStatus.OPEN
"""The step's question is open."""

ACTIVE: ColumnElement[bool] = and_(QUESTION_OPEN, _run_state == RunState.ACTIVE)
"""The step's question is open, and its run active."""
