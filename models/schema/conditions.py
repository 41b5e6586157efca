"""Conditions that statements over steps have in common."""

from sqlalchemy import ColumnElement, and_, select

from cotrail.models.schema.states import DesiredState, QuestionStatus
from cotrail.models.schema.tables import questions, runs, steps

# Scalar subqueries rather than joins: given a join, the planner may begin with all open questions, or with all steps of
# a run or a question, and read thousands of rows to find a few.
_status = select(questions.c.status).where(questions.c.id == steps.c.question_id).scalar_subquery()
_desired_state = select(runs.c.desired_state).where(runs.c.id == steps.c.run_id).scalar_subquery()

QUESTION_OPEN: ColumnElement[bool] = _status == QuestionStatus.OPEN
"""The step's question is open."""

ACTIVE: ColumnElement[bool] = and_(QUESTION_OPEN, _desired_state == DesiredState.ACTIVE)
"""The step's question is open, and its run active."""

SERVED: ColumnElement[bool] = (
    select(runs.c.served).where(runs.c.id == steps.c.run_id).correlate(steps).scalar_subquery()
)
"""The language model of the step's run answers from a server or a script."""

ASKED: ColumnElement[bool] = select(runs.c.asked).where(runs.c.id == steps.c.run_id).correlate(steps).scalar_subquery()
"""The step's run is a question that somebody asked and waits for."""
