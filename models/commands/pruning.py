"""Pruning runs: removing all their rows, and the paragraphs and demonstrations that nothing refers to any more.

A run is marked first and its own row goes last, so that an interrupted pruning is known and can be completed. Each
chunk is a transaction of its own, so that no lock is held for long. Contents in use stay:

    A paragraph is removed under its row's lock, if a statement that began under that lock finds no reference to it. A
    transaction that refers to a paragraph locks it too, and so either is seen by that statement or finds the paragraph
    gone: `cotrail.models.records.contents`, and a worker that has it cached (`cotrail.models.execution.ledger`), then
    store it again.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from cotrail.errors import InputError
from cotrail.models.records.projects import in_project
from cotrail.models.schema import tables
from cotrail.models.schema.seals import amending
from cotrail.models.schema.states import UNENDED_QUESTIONS, DesiredState
from cotrail.models.schema.tables import demonstrations, paragraphs, questions, runs, steps

QUESTION_CHUNK = 200
"""The number of questions removed at once, with all their steps."""

PARAGRAPH_CHUNK = 2000
"""The number of paragraphs checked for references at once."""

_of_run = questions.c.run_id == runs.c.id
_ended_at = sa.func.coalesce(
    sa.select(sa.func.max(questions.c.finished_at)).where(_of_run).scalar_subquery(), runs.c.created_at
)
_has_ended = ~sa.exists().where(_of_run, questions.c.status.in_(UNENDED_QUESTIONS))


class Pruned(Struct, frozen=True, kw_only=True):
    """The numbers of rows that a chunk removed."""

    questions: int = 0
    runs: int = 0
    paragraphs: int = 0
    demonstrations: int = 0


class Weight(Struct, frozen=True, kw_only=True):
    """The size of runs; bytes: of their rows, without indexes and without contents shared with other runs."""

    runs: int
    questions: int
    steps: int
    bytes: int


def begun(connection: sa.Connection) -> list[str]:
    """Return the runs whose pruning was begun and not completed, the oldest first."""
    query = sa.select(runs.c.id).where(runs.c.desired_state == DesiredState.PRUNED, *in_project(connection, runs))
    return list(connection.execute(query.order_by(runs.c.created_at, runs.c.id)).scalars())


def ended_before(connection: sa.Connection, days: float) -> list[str]:
    """Return the finished and cancelled runs that ended more than so many days ago, the oldest first."""
    old = _has_ended, _ended_at < sa.func.now() - timedelta(days=days)
    query = sa.select(runs.c.id).where(*old, *in_project(connection, runs))
    return list(connection.execute(query.order_by(runs.c.created_at, runs.c.id)).scalars())


def weigh(connection: sa.Connection, run_ids: Sequence[str]) -> Weight:
    """Return the size of what removing these runs would remove."""
    of_runs = steps.c.run_id.in_(run_ids)
    question_sizes = sa.select(sa.func.count(), _bytes("questions")).where(questions.c.run_id.in_(run_ids))
    taken = sa.select(sa.func.count(), _bytes("steps")).where(of_runs)
    belonging = [
        sa.select(_bytes(table.name)).join_from(table, steps, table.c.step_id == steps.c.id).where(of_runs)
        for table in (tables.attempts, tables.sentences, tables.paragraph_sets)
    ]
    (n_questions, of_questions), (n_steps, of_steps) = (
        connection.execute(query).one() for query in (question_sizes, taken)
    )
    size = of_questions + of_steps + sum(connection.execute(query).scalar_one() for query in belonging)
    return Weight(runs=len(run_ids), questions=n_questions, steps=n_steps, bytes=int(size))


def prune(engine: sa.Engine, run_ids: Sequence[str]) -> Iterator[Pruned]:
    """Remove runs, a chunk at each `next`; raises InputError where one hasn't ended.

    An interrupted pruning can be started again, and any number of processes may prune at once.
    """
    with engine.begin() as connection:
        _mark(connection, run_ids)
    for run_id in run_ids:
        while removed := _remove_questions(engine, run_id):
            yield Pruned(questions=removed)
        yield _remove_run(engine, run_id)
    yield from _remove_paragraphs(engine)


def _bytes(table: str) -> Any:
    return sa.func.coalesce(sa.func.sum(sa.func.pg_column_size(sa.literal_column(f"{table}.*"))), 0)


def _mark(connection: sa.Connection, run_ids: Sequence[str]) -> None:
    """Mark runs as being removed, which is final."""
    amending(connection)
    chosen = sa.select(runs.c.id, _has_ended.label("ended"), runs.c.desired_state).where(runs.c.id.in_(run_ids))
    rows = connection.execute(chosen.order_by(runs.c.id).with_for_update()).all()
    live = [row.id for row in rows if not row.ended and row.desired_state != DesiredState.PRUNED]
    if live:
        have = "hasn't" if len(live) == 1 else "haven't"
        raise InputError(f"{', '.join(live)} {have} ended; `cotrail cancel RUN` ends a run, then prune it")
    connection.execute(sa.update(runs).where(runs.c.id.in_(run_ids)).values(desired_state=DesiredState.PRUNED))


def _remove_questions(engine: sa.Engine, run_id: str) -> int:
    """Remove some of a run's questions; their steps and all that belongs to these go by cascading foreign keys."""
    some = (
        sa.select(questions.c.id)
        .where(questions.c.run_id == run_id)
        .limit(QUESTION_CHUNK)
        .with_for_update(skip_locked=True)
    )
    with engine.begin() as connection:
        amending(connection)
        return connection.execute(sa.delete(questions).where(questions.c.id.in_(some))).rowcount


def _remove_run(engine: sa.Engine, run_id: str) -> Pruned:
    """Remove a run's own row, and its experiment and demonstrations where no other run has them."""
    with engine.begin() as connection:
        amending(connection)
        row = connection.execute(
            sa.select(runs.c.experiment_id, runs.c.demonstrations).where(runs.c.id == run_id)
        ).first()
        if row is None:
            return Pruned()
        # Locked first, and checked by later statements: these see all references committed before the lock was granted.
        connection.execute(
            sa.select(tables.experiments.c.id).where(tables.experiments.c.id == row.experiment_id).with_for_update()
        )
        shots = list(connection.execute(_SHOTS, {"digests": list(row.demonstrations.values())}).scalars())
        connection.execute(sa.delete(runs).where(runs.c.id == run_id))
        connection.execute(
            sa.delete(tables.experiments).where(tables.experiments.c.id == row.experiment_id, ~_has_runs)
        )
        removed = connection.execute(_REMOVE_SHOTS, {"digests": shots}).rowcount if shots else 0
    return Pruned(runs=1, demonstrations=removed)


_digests = sa.bindparam("digests", type_=ARRAY(sa.TEXT))
_has_runs = sa.exists().where(runs.c.experiment_id == tables.experiments.c.id)
_SHOTS = (
    # The empty ones stay: systems refer to them without a run that brought them.
    sa.select(demonstrations.c.digest)
    .where(demonstrations.c.digest == sa.func.any(_digests), demonstrations.c.body["items"] != sa.cast([], JSONB))
    .with_for_update(skip_locked=True)
)
_shown = sa.func.jsonb_each_text(runs.c.demonstrations).table_valued("key", "value")
_REMOVE_SHOTS = sa.delete(demonstrations).where(
    demonstrations.c.digest == sa.func.any(_digests),
    demonstrations.c.digest.not_in(sa.select(_shown.c.value).select_from(runs.join(_shown, sa.true()))),
)
_in_use = sa.exists().where(tables.paragraph_sets.c.digest == paragraphs.c.digest) | sa.exists().where(
    tables.made_paragraphs.c.digest == paragraphs.c.digest
)
_looked_at = (
    sa.select(paragraphs.c.digest)
    .where(paragraphs.c.digest > sa.bindparam("after"))
    .order_by(paragraphs.c.digest)
    .limit(PARAGRAPH_CHUNK)
    .subquery("looked_at")
)
_LAST = sa.select(sa.func.max(_looked_at.c.digest))
_UNUSED = (
    sa.select(paragraphs.c.digest)
    .where(paragraphs.c.digest > sa.bindparam("after"), paragraphs.c.digest <= sa.bindparam("last"), ~_in_use)
    .with_for_update(skip_locked=True)
)
_REMOVE = sa.delete(paragraphs).where(paragraphs.c.digest == sa.func.any(_digests), ~_in_use)


def _remove_paragraphs(engine: sa.Engine) -> Iterator[Pruned]:
    """Go through all paragraphs, and remove those that nothing refers to."""
    after = ""
    while True:
        with engine.begin() as connection:
            last = connection.execute(_LAST, {"after": after}).scalar()
            if last is None:
                return
            unused = list(connection.execute(_UNUSED, {"after": after, "last": last}).scalars())
            amending(connection)
            removed = connection.execute(_REMOVE, {"digests": unused}).rowcount if unused else 0
        after = last
        yield Pruned(paragraphs=removed)
