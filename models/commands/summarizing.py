"""Summaries of questions that have ended: which are due, and writing them.

They are derived: `cotrail retry` removes those of the questions that it opens again, and rules of another version make
them again. A run is gone through in the order in which its questions ended. What was recorded late, as its transaction
took long, is found when the run is sealed and gone through once more.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.dialects.postgresql import ARRAY, insert

from cotrail.models.schema.service_tables import question_summaries as summaries
from cotrail.models.schema.service_tables import run_summaries
from cotrail.models.schema.states import DesiredState, QuestionStatus
from cotrail.models.schema.tables import questions, runs

VERSION = 4
"""Of the rules behind summaries: raised when they change, so that all are computed again."""

ENDED = (QuestionStatus.FINISHED, QuestionStatus.FAILED, QuestionStatus.CANCELLED)
"""The statuses of questions that are summarized."""

SETTLED_SECONDS = 60
"""So long after their time, all ends are taken for recorded."""


class EndedQuestion(Struct, frozen=True):
    """A question that has ended: its id, and when."""

    id: int
    at: datetime


_run, _version = sa.bindparam("run", type_=sa.Text), sa.bindparam("wanted", type_=sa.Integer)
_limit = sa.bindparam("most", type_=sa.Integer)
_current = sa.exists().where(summaries.c.question_id == questions.c.id, summaries.c.version == _version)
_behind = sa.or_(
    run_summaries.c.through_at.is_(None),
    sa.tuple_(questions.c.finished_at, questions.c.id)
    > sa.tuple_(run_summaries.c.through_at, run_summaries.c.through_id),
)
_ended = (questions.c.finished_at.is_not(None), questions.c.status.in_(ENDED))
_as_it_stands = sa.and_(run_summaries.c.version == _version, run_summaries.c.digest.is_not_distinct_from(runs.c.digest))
_new = sa.or_(
    run_summaries.c.run_id.is_(None),
    ~_as_it_stands,
    sa.and_(runs.c.digest.is_not(None), ~run_summaries.c.complete),
    sa.and_(runs.c.digest.is_(None), sa.exists().where(questions.c.run_id == runs.c.id, *_ended, _behind, ~_current)),
)
_DUE = (
    sa.select(runs.c.id)
    .outerjoin(run_summaries, run_summaries.c.run_id == runs.c.id)
    .where(
        runs.c.desired_state != DesiredState.PRUNED,
        _new,
        sa.or_(runs.c.digest.is_not(None), sa.exists().where(questions.c.run_id == runs.c.id, *_ended)),
    )
    .order_by(runs.c.created_at.desc(), runs.c.id.desc())
    .limit(_limit)
)
_NEXT = (
    sa.select(questions.c.id, questions.c.finished_at)
    .join_from(questions, run_summaries, run_summaries.c.run_id == questions.c.run_id)
    .where(questions.c.run_id == _run, *_ended, _behind, ~_current)
    .order_by(questions.c.finished_at, questions.c.id)
    .limit(_limit)
)
_fresh = {"through_at": None, "through_id": None, "complete": False, "version": _version}
_BEGIN = (
    insert(run_summaries)
    .from_select(
        ["run_id", "version", "digest"], sa.select(runs.c.id, _version, runs.c.digest).where(runs.c.id == _run)
    )
    .on_conflict_do_nothing()
)
_BEGIN_AGAIN = (
    sa.update(run_summaries)
    .where(run_summaries.c.run_id == _run, runs.c.id == run_summaries.c.run_id, ~_as_it_stands)
    .values(_fresh | {"digest": runs.c.digest, "scores": {}})
)
_LOCK = (
    sa.select(questions.c.id)
    .join(
        sa.func.unnest(
            sa.bindparam("ids", type_=ARRAY(sa.BigInteger)),
            sa.bindparam("times", type_=ARRAY(sa.TIMESTAMP(timezone=True))),
        )
        .table_valued("id", "at")
        .render_derived("seen"),
        sa.literal_column("seen.id") == questions.c.id,
    )
    # The same end as was seen, and FOR SHARE: `cotrail retry` waits, and then removes what is written here.
    .where(questions.c.finished_at == sa.literal_column("seen.at"), questions.c.status.in_(ENDED))
    .order_by(questions.c.id)
    .with_for_update(read=True, of=questions)
)
_settled = sa.func.now() - sa.literal(SETTLED_SECONDS) * sa.literal_column("interval '1 second'")
_at = sa.bindparam("at", type_=sa.TIMESTAMP(timezone=True))
_ADVANCE = (
    sa.update(run_summaries)
    .where(run_summaries.c.run_id == _run)
    .values(
        through_at=sa.case((_at < _settled, _at), else_=_settled),
        through_id=sa.case((_at < _settled, sa.bindparam("id", type_=sa.BigInteger)), else_=0),
    )
)


def due_runs(connection: sa.Connection, version: int, limit: int) -> list[str]:
    """Return runs with questions that have ended and aren't summarized by this version, the newest first."""
    return list(connection.execute(_DUE, {"wanted": version, "most": limit}).scalars())


def begin(connection: sa.Connection, run_id: str, version: int) -> bool:
    """Begin a run, or begin it again where it was sealed, opened again, or summarized by another version.

    Returns whether it did.
    """
    made = connection.execute(_BEGIN, {"run": run_id, "wanted": version})
    again = connection.execute(_BEGIN_AGAIN, {"run": run_id, "wanted": version})
    return bool(made.rowcount or again.rowcount)


def next_questions(connection: sa.Connection, run_id: str, version: int, limit: int) -> list[EndedQuestion]:
    """Return the next questions of a run that was begun, at most so many."""
    rows = connection.execute(_NEXT, {"run": run_id, "wanted": version, "most": limit})
    return [EndedQuestion(*row) for row in rows]


def write_summaries(
    connection: sa.Connection, run_id: str, ended: Sequence[EndedQuestion], rows: Mapping[int, Mapping[str, Any]]
) -> None:
    """Write summaries by the question's id, apart from those of questions that were opened again meanwhile."""
    seen = {"ids": [each.id for each in ended], "times": [each.at for each in ended]}
    kept = [rows[each] for each in connection.execute(_LOCK, seen).scalars() if each in rows]
    if kept:
        statement = insert(summaries)
        changed = {
            each.name: statement.excluded[each.name]
            for each in summaries.c
            if not each.primary_key and not each.computed
        }
        connection.execute(statement.on_conflict_do_update(index_elements=["question_id"], set_=changed), kept)
    if ended:
        connection.execute(_ADVANCE, {"run": run_id, "at": ended[-1].at, "id": ended[-1].id})


def write_counts(connection: sa.Connection, run_id: str, counts: Any) -> None:
    """Write the numbers of a run's summarized questions."""
    own = run_summaries.c.run_id == run_id
    connection.execute(sa.update(run_summaries).where(own).values(counts=counts))


def complete(connection: sa.Connection, run_id: str, digest: str, scores: Any) -> None:
    """Say that all questions of a run sealed by this digest are summarized, with the run's scores."""
    own = run_summaries.c.run_id == run_id, run_summaries.c.digest == digest
    connection.execute(sa.update(run_summaries).where(*own).values(complete=True, scores=scores))


def forget_summaries(connection: sa.Connection, question_ids: Sequence[int]) -> None:
    """Remove the summaries of questions of a run that are opened again; the run is then gone through again."""
    connection.execute(sa.delete(summaries).where(summaries.c.question_id.in_(question_ids)))
    run = sa.select(questions.c.run_id).where(questions.c.id.in_(question_ids)).limit(1).scalar_subquery()
    connection.execute(sa.update(run_summaries).where(run_summaries.c.run_id == run).values(version=0, complete=False))
