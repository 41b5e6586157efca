"""The questions of a run, a page at a time: however large the run is, a page is read by an index alone."""

from collections.abc import Collection

from sqlalchemy import Connection, RowMapping, select, union_all

from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.tables import questions

_SHOWN = tuple(
    questions.c[name]
    for name in ("id", "position", "key", "text", "kind", "status", "answer", "ended_by", "reason", "finished_at")
)


def list_questions(
    connection: Connection, run_id: str, *, statuses: Collection[QuestionStatus], limit: int, after: int | None = None
) -> list[RowMapping]:
    """Return rows of a run's questions of these statuses, in their order; at most `limit`, behind that of id `after`.

    Ids are given in the order of the positions, and the index of a run's questions by status ends with them.
    """
    pages = []
    for status in statuses:
        chosen = select(*_SHOWN).where(questions.c.run_id == run_id, questions.c.status == status)
        behind = chosen if after is None else chosen.where(questions.c.id > after)
        pages.append(behind.order_by(questions.c.id).limit(limit).subquery().select())
    page = union_all(*pages).subquery()
    return list(connection.execute(page.select().order_by(page.c.id).limit(limit)).mappings())
