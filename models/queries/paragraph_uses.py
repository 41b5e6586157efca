"""Questions whose searches found a paragraph, the latest search first."""

from typing import NamedTuple

from sqlalchemy import Connection, RowMapping, select, tuple_

from cotrail.models.records.projects import in_project
from cotrail.models.schema.tables import paragraph_sets, questions, runs


class Place(NamedTuple):
    """The place of a find in the list."""

    step: int
    rank: int


_USES = (
    select(
        questions.c.run_id.label("run"),
        questions.c.key.label("question_id"),
        questions.c.text.label("question"),
        questions.c.status,
        questions.c.collected,
        paragraph_sets.c.step_id,
        paragraph_sets.c.rank,
        paragraph_sets.c.score,
        paragraph_sets.c.query,
        paragraph_sets.c.paragraph_id,
    )
    .join(questions, questions.c.id == paragraph_sets.c.question_id)
    .join(runs, runs.c.id == questions.c.run_id)
    .order_by(paragraph_sets.c.step_id.desc(), paragraph_sets.c.rank.desc())
)


def list_uses(connection: Connection, digest: str, limit: int, after: Place | None) -> list[RowMapping]:
    """Return the finds of the paragraph of this digest, at most `limit`, behind the place `after`."""
    statement = _USES.where(paragraph_sets.c.digest == digest, *in_project(connection, runs))
    if after is not None:
        statement = statement.where(tuple_(paragraph_sets.c.step_id, paragraph_sets.c.rank) < tuple_(*after))
    return list(connection.execute(statement.limit(limit)).mappings())
