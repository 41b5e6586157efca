"""Steps that may be carried out again, and what they came to beside what was recorded of them.

Repeats: the runs that ask the same questions with other seeds.
"""

from collections.abc import Collection
from typing import Any

from msgspec import Struct
from sqlalchemy import BigInteger, Connection, RowMapping, Select, Text, column, func, select
from sqlalchemy.dialects.postgresql import aggregate_order_by

from cotrail.core.history import GIVEN
from cotrail.core.repeats import REPEAT, Repeat, RepeatedSteps, read_repeat
from cotrail.models.queries.runs import RunRecord
from cotrail.models.records.projects import in_project, qualified
from cotrail.models.schema.base import recordset
from cotrail.models.schema.states import QuestionStatus, StepState
from cotrail.models.schema.tables import questions, runs, steps


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


class Side(Struct, frozen=True, kw_only=True):
    """A step in one of two runs.

    request, result: as they are stored; result: None where it has none, or none yet. answer: the question's, if any.
    """

    kind: str
    fingerprint: str
    state: str
    request: dict[str, Any]
    result: dict[str, Any] | None
    answer: str | None


class Pair(Struct, frozen=True, kw_only=True):
    """A step that was recorded, and the same carried out again, or None where it hasn't been asked for."""

    question: str
    step: int
    recorded: Side
    again: Side | None


_drawn = recordset(column("key", Text), column("step", BigInteger))


def read_candidates(connection: Connection, run_id: str, kinds: Collection[str]) -> dict[str, list[int]]:
    """Return the numbers of each question's steps of these kinds that have a result, by its key in their order.

    Steps that a fork took over whatever its settings ask for are left out: these settings may ask for others. So are
    those that a person edited, which came out of something else than what was asked for.
    """
    numbers = func.array_agg(aggregate_order_by(steps.c.sequence, steps.c.sequence))
    query = (
        select(questions.c.key, numbers)
        .join_from(steps, questions, steps.c.question_id == questions.c.id)
        .where(
            steps.c.run_id == run_id,
            steps.c.kind.in_(kinds),
            steps.c.state == StepState.FINISHED,
            steps.c.worker.is_distinct_from(GIVEN),
            steps.c.edit.is_(None),
        )
        .group_by(questions.c.key, questions.c.position)
        .order_by(questions.c.position)
    )
    return {key: list(found) for key, found in connection.execute(query)}


def read_pairs(connection: Connection, run_id: str, repeated: RepeatedSteps) -> list[Pair]:
    """Return the drawn steps as they were recorded and as run `run_id` carried them out, in the order of questions.

    Those that are no longer recorded are left out.
    """
    rows = [{"key": key, "step": step} for key, step in repeated.steps.items()]
    recorded, again = (
        {row["key"]: row for row in connection.execute(_side(run), {"rows": rows}).mappings()}
        for run in (repeated.run, run_id)
    )
    return [
        Pair(question=key, step=step, recorded=_read(recorded[key]), again=_read(again[key]) if key in again else None)
        for key, step in repeated.steps.items()
        if key in recorded
    ]


def _side(run_id: str) -> Select[Any]:
    """Select the drawn steps of a run."""
    return (
        select(
            questions.c.key,
            *(steps.c[name] for name in ("kind", "fingerprint", "state", "request", "result")),
            questions.c.answer,
            questions.c.status,
        )
        .join_from(_drawn, questions, questions.c.key == _drawn.c.key)
        .join(steps, (steps.c.question_id == questions.c.id) & (steps.c.sequence == _drawn.c.step))
        .where(questions.c.run_id == run_id)
    )


def _read(row: RowMapping) -> Side:
    return Side(
        **{name: row[name] for name in ("kind", "fingerprint", "state", "request", "result")},
        answer=row["answer"] if row["status"] == QuestionStatus.FINISHED else None,
    )
