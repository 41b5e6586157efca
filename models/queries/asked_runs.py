"""The questions that were asked alone, a page at a time."""

from sqlalchemy import Connection, RowMapping, select, tuple_

from cotrail.models.records.projects import in_project
from cotrail.models.schema.tables import questions, runs

_ASKED = (
    select(
        runs.c.id.label("run"),
        runs.c.created_at,
        runs.c.system,
        runs.c.model_name.label("model"),
        runs.c.corpus,
        questions.c.text.label("question"),
        questions.c.status,
        questions.c.answer,
        questions.c.ended_by,
        questions.c.finished_at,
    )
    .join(questions, questions.c.run_id == runs.c.id)
    .where(runs.c.asked)
    .order_by(runs.c.created_at.desc(), runs.c.id.desc())
)


def list_asked(connection: Connection, limit: int, after: str | None) -> list[RowMapping]:
    """Return the questions, the newest first, at most `limit`, behind that of the run `after`."""
    statement = _ASKED.where(*in_project(connection, runs))
    if after is not None:
        last = select(runs.c.created_at, runs.c.id).where(runs.c.id == after).scalar_subquery()
        statement = statement.where(tuple_(runs.c.created_at, runs.c.id) < last)
    return list(connection.execute(statement.limit(limit)).mappings())
