"""Recording what people say of the sentences of chains of thought, and of the causes of wrong answers."""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from cotrail.errors import UnknownNameError
from cotrail.evaluation.causes.cause import CauseLabel
from cotrail.evaluation.metrics.factual_errors import SentenceMark
from cotrail.models.schema.tables import annotations, cause_labels, questions


def record_annotations(connection: Connection, run_id: str, marks: Sequence[SentenceMark]) -> None:
    """Store marks, each in place of its annotator's former one; an equal one keeps its time.

    Raises UnknownNameError where a question isn't the run's.
    """
    ids = _ids(connection, run_id, {mark.question_id for mark in marks})
    for mark in marks:
        new = insert(annotations).values(
            question_id=ids[mark.question_id],
            position=mark.position,
            annotator=mark.annotator,
            run_id=run_id,
            is_true=mark.is_true,
            note=mark.note,
        )
        says = {"is_true": new.excluded.is_true, "note": new.excluded.note}
        connection.execute(
            new.on_conflict_do_update(
                index_elements=[annotations.c.question_id, annotations.c.position, annotations.c.annotator],
                set_={**says, "created_at": func.now()},
                where=or_(*(annotations.c[name] != value for name, value in says.items())),
            )
        )


def forget_annotation(connection: Connection, run_id: str, mark: SentenceMark) -> None:
    """Remove an annotator's mark of a sentence."""
    [question_id] = _ids(connection, run_id, {mark.question_id}).values()
    connection.execute(
        delete(annotations).where(
            annotations.c.question_id == question_id,
            annotations.c.position == mark.position,
            annotations.c.annotator == mark.annotator,
        )
    )


def record_cause_labels(connection: Connection, run_id: str, labels: Sequence[CauseLabel]) -> None:
    """Store labels, each in place of its annotator's former one; an equal one keeps its time.

    Raises UnknownNameError where a question isn't the run's.
    """
    ids = _ids(connection, run_id, {label.question_id for label in labels})
    for label in labels:
        says = {"cause": label.cause.value, "note": label.note}
        new = insert(cause_labels).values(
            question_id=ids[label.question_id], annotator=label.annotator, run_id=run_id, **says
        )
        connection.execute(
            new.on_conflict_do_update(
                index_elements=[cause_labels.c.question_id, cause_labels.c.annotator],
                set_={**says, "created_at": func.now()},
                where=or_(*(cause_labels.c[name] != value for name, value in says.items())),
            )
        )


def forget_cause_label(connection: Connection, run_id: str, question_id: str, annotator: str) -> None:
    """Remove an annotator's label of a question."""
    [found] = _ids(connection, run_id, {question_id}).values()
    connection.execute(
        delete(cause_labels).where(cause_labels.c.question_id == found, cause_labels.c.annotator == annotator)
    )


def _ids(connection: Connection, run_id: str, keys: set[str]) -> dict[str, int]:
    query = select(questions.c.key, questions.c.id).where(questions.c.run_id == run_id, questions.c.key.in_(keys))
    ids = {row.key: row.id for row in connection.execute(query)}
    if unknown := sorted(keys - ids.keys()):
        raise UnknownNameError(f"run {run_id} has no question {unknown[0]!r}; `cotrail export {run_id}` lists them")
    return ids
