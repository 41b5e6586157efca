"""Ids of a run's questions."""

from array import array

from sqlalchemy import Connection, select

from cotrail.models.schema.tables import questions

FETCHED_IDS = 10_000
"""The number of ids fetched at once: a run may have millions."""


def read_question_ids(connection: Connection, run_id: str) -> "array[int]":
    """Return the ids of a run's questions, by position."""
    query = select(questions.c.id).where(questions.c.run_id == run_id)
    ordered = query.order_by(questions.c.position, questions.c.id).execution_options(yield_per=FETCHED_IDS)
    return array("q", connection.execute(ordered).scalars())
