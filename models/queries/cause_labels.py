"""Labels by hand of the causes of wrong answers."""

from sqlalchemy import Connection, select

from cotrail.evaluation.causes.cause import Cause
from cotrail.evaluation.causes.cause_label import CauseLabel
from cotrail.models.schema.tables import cause_labels, questions


def read_cause_labels(connection: Connection, run_id: str, annotator: str | None = None) -> tuple[CauseLabel, ...]:
    """Return the labels of one annotator or of all, by question."""
    columns = (questions.c.key, *(cause_labels.c[name] for name in ("annotator", "cause", "note", "created_at")))
    query = (
        select(*columns)
        .join_from(cause_labels, questions, cause_labels.c.question_id == questions.c.id)
        .where(cause_labels.c.run_id == run_id)
        .order_by(questions.c.position, cause_labels.c.annotator)
    )
    if annotator is not None:
        query = query.where(cause_labels.c.annotator == annotator)
    return tuple(
        CauseLabel(
            question_id=row.key,
            annotator=row.annotator,
            cause=Cause(row.cause),
            note=row.note,
            labelled_at=row.created_at,
        )
        for row in connection.execute(query)
    )
