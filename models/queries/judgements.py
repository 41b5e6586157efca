"""Judgements: the runs that grade a run's answers, and what they say of each question."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, select

from cotrail.core.questions import read_kinds
from cotrail.core.results import Failure
from cotrail.models.queries.runs import RunRecord, read_run
from cotrail.models.records.projects import in_project
from cotrail.models.schema.states import DesiredState, QuestionStatus
from cotrail.models.schema.tables import questions, runs

JUDGE = "judge"
"""The system whose runs judge."""


class JudgedQuestion(Struct, frozen=True, kw_only=True):
    """A question of a judged run; answered: whether it has an answer; published: whether its dataset has one.

    asked: whether it was asked to its end, or may yet be: it wasn't cancelled, or left over by a rule or a budget.
    """

    key: str
    text: str
    kinds: dict[str, str]
    answered: bool
    published: bool
    asked: bool = True


class RecordedJudgement(Struct, frozen=True, kw_only=True):
    """A question of a judge's run: how it stands there, and what the judge said, as JSON.

    ended_by: what ended it there, e.g. a limit; empty where nothing has. runs: those whose answers it grades.
    """

    key: str
    status: str
    details: Any
    reason: Failure | None
    ended_by: str
    runs: tuple[str, ...]


def read_judges(connection: Connection, run_id: str) -> Sequence[RunRecord]:
    """Return the runs that judge this one, the oldest first, without those that were cancelled or pruned."""
    ended = (DesiredState.CANCELLED, DesiredState.PRUNED)
    query = (
        select(runs.c.id)
        .where(runs.c.system == JUDGE, runs.c.settings["runs"].contains([run_id]))
        .where(runs.c.desired_state.not_in(ended), *in_project(connection, runs))
        .order_by(runs.c.created_at, runs.c.id)
    )
    return [read_run(connection, judge) for judge in connection.execute(query).scalars()]


def read_judged(connection: Connection, run_id: str) -> list[JudgedQuestion]:
    """Return the questions of a run that is judged, in their order."""
    columns = (questions.c[name] for name in ("key", "text", "kind", "status", "answers"))
    query = select(*columns).where(questions.c.run_id == run_id).order_by(questions.c.position)
    return [
        JudgedQuestion(
            key=row.key,
            text=row.text,
            kinds=read_kinds(row.kind),
            answered=row.status == QuestionStatus.FINISHED,
            published=bool(row.answers),
            asked=row.status != QuestionStatus.CANCELLED,
        )
        for row in connection.execute(query)
    ]


def read_judgements(connection: Connection, judge_id: str, key: str | None = None) -> list[RecordedJudgement]:
    """Return the questions of a judge's run, in their order; key: only the one with this id."""
    first, second = (questions.c.judged[place]["run"].astext.label(name) for place, name in enumerate(("one", "two")))
    columns = (questions.c[name] for name in ("key", "status", "weighing", "reason", "ended_by"))
    query = select(*columns, first, second).where(questions.c.run_id == judge_id).order_by(questions.c.position)
    if key is not None:
        query = query.where(questions.c.key == key)
    return [
        RecordedJudgement(
            key=row.key,
            status=row.status,
            details=row.weighing,
            reason=msgspec.convert(row.reason, Failure | None),
            ended_by=row.ended_by or "",
            runs=tuple(run for run in (row.one, row.two) if run is not None),
        )
        for row in connection.execute(query)
    ]
