"""Repeats: the runs that ask the same questions with other seeds."""

from sqlalchemy import Connection, select

from cotrail.core.repeats import REPEAT, Repeat, read_repeat
from cotrail.models.queries.runs import RunRecord
from cotrail.models.records.projects import in_project, qualified
from cotrail.models.schema.tables import runs


def runs_of(connection: Connection, record: RunRecord) -> dict[str, Repeat]:
    """Return the repeats of a run, itself included, by their ids in the order of their numbers; empty without any."""
    own = read_repeat(record.provenance)
    if own is None:
        return {}
    id_ = record.experiment_id
    query = select(runs.c.id, runs.c.provenance).where(
        runs.c.provenance[REPEAT]["of"].astext == own.of,
        runs.c.experiment_id.is_not_distinct_from(id_ and qualified(connection, id_)),
        *in_project(connection, runs),
    )
    found = {row.id: repeat for row in connection.execute(query) if (repeat := read_repeat(row.provenance))}
    return dict(sorted(found.items(), key=lambda each: each[1].number))
