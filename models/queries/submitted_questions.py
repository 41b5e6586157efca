"""Questions of a run as they were submitted, with what they are judged by."""

from collections.abc import Collection, Iterator
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, select

from cotrail.audit.asked_questions import AskedDigests, AskedQuestions
from cotrail.core.questions import Question
from cotrail.models.schema.tables import questions

FETCHED_ROWS = 1000
"""The number of questions fetched at once: a run may have millions."""


def read_submitted(connection: Connection, run_id: str, keys: Collection[str] = ()) -> list[Question]:
    """Return the questions of a run in their order; those of these ids where any are given."""
    return [
        msgspec.convert({"id": row.key, **{name: row._mapping[name] for name in _JUDGED}, "text": row.text}, Question)
        for row in _rows(connection, run_id, keys)
    ]


def read_asked_digests(connection: Connection, run_id: str) -> AskedQuestions:
    """Return the digests over the questions of a run, from their rows as these are."""
    digests = AskedDigests()
    for row in _rows(connection, run_id):
        digests.add(row.key, row.text, row.pinned, row.answers, row.gold)
    return digests.end()


_JUDGED = ("pinned", "answers", "gold")


def _rows(connection: Connection, run_id: str, keys: Collection[str] = ()) -> Iterator[Row[Any]]:
    columns = (questions.c[name] for name in ("key", "text", *_JUDGED))
    query = select(*columns).where(questions.c.run_id == run_id).order_by(questions.c.position, questions.c.id)
    chosen = query.where(questions.c.key.in_(keys)) if keys else query
    yield from connection.execute(chosen.execution_options(yield_per=FETCHED_ROWS))
