"""Recording what people say of the sentences of chains of thought, and of the causes of wrong answers."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, Table, delete, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from cotrail.errors import UnknownNameError
from cotrail.evaluation.causes.cause import CauseLabel
from cotrail.evaluation.metrics.factual_errors import SentenceMark
from cotrail.models.schema.tables import annotations, cause_labels, questions

_TABLES: dict[type[SentenceMark | CauseLabel], Table] = {SentenceMark: annotations, CauseLabel: cause_labels}


def record(connection: Connection, run_id: str, said: Sequence[SentenceMark | CauseLabel]) -> None:
    """Store marks or labels, each in place of its annotator's former one; an equal one keeps its time.

    Raises UnknownNameError where a question isn't the run's.
    """
    ids = _ids(connection, run_id, {each.question_id for each in said})
    for each in said:
        table = _TABLES[type(each)]
        fields = {name: value for name, value in msgspec.to_builtins(each).items() if name in table.c}
        new = insert(table).values(fields | {"question_id": ids[each.question_id], "run_id": run_id})
        says = {name: new.excluded[name] for name in fields if not table.c[name].primary_key}
        connection.execute(
            new.on_conflict_do_update(
                index_elements=table.primary_key.columns,
                set_={**says, "created_at": func.now()},
                where=or_(*(table.c[name] != value for name, value in says.items())),
            )
        )


def forget(
    connection: Connection, run_id: str, sort: type[SentenceMark | CauseLabel], question_id: str, **key: str | int
) -> None:
    """Remove a mark or a label; key: the fields that tell it from others of that question."""
    [found] = _ids(connection, run_id, {question_id}).values()
    connection.execute(delete(_TABLES[sort]).filter_by(question_id=found, **key))


def _ids(connection: Connection, run_id: str, keys: set[str]) -> dict[str, int]:
    query = select(questions.c.key, questions.c.id).where(questions.c.run_id == run_id, questions.c.key.in_(keys))
    ids = {row.key: row.id for row in connection.execute(query)}
    if unknown := sorted(keys - ids.keys()):
        raise UnknownNameError(f"run {run_id} has no question {unknown[0]!r}; `cotrail export {run_id}` lists them")
    return ids
