"""What happened to runs, in the order in which every reader sees it: ends of steps, changes of questions' status.

Numbers of rows are given before their transactions commit, so a reader that goes by the greatest one that it has seen
skips what commits late. Events are therefore ordered by the number of the transaction that made them, and only those
below the snapshot's horizon are read: every transaction below it has ended, so that nothing can appear there any more.
What changes again moves to its new place; its former event is gone.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import text
from sqlalchemy.dialects.postgresql import aggregate_order_by

from cotrail.core.actions.registry import KINDS
from cotrail.core.views import NAME
from cotrail.errors import InputError
from cotrail.models.queries.runs import no_questions, state_of
from cotrail.models.records.budgets import IN_A_ROW, stopped_runs
from cotrail.models.schema.states import QuestionStatus, RunState, StepState
from cotrail.models.schema.tables import paragraph_sets, paragraphs, questions, runs, steps

TEXT = 4000
"""The most characters of a text in an event; the trace has all of it."""

TITLES = 20
"""The most titles of paragraphs in an event."""

_KINDS = "sq"
_HORIZON: sa.ColumnElement[int] = sa.func.pg_snapshot_xmin(sa.func.pg_current_snapshot())
_LAST_ROW = 2**63 - 1
_NUMBERS = 2**64


class Position(NamedTuple):
    """The place of an event, or of none: before all.

    number: of the transaction; rank: 0 of a step, 1 of a question, which changes after its steps; row: the row's id.
    """

    number: int = 0
    rank: int = 0
    row: int = -1

    def __str__(self) -> str:
        """The id by which readers go on behind it."""
        return f"{self.number}.{_KINDS[self.rank]}.{self.row}"


START = Position()
"""Before all events."""


def read_position(written: str) -> Position:
    """Return the place that an event's id stands for; raises InputError."""
    match written.split("."):
        case [number, ("s" | "q") as kind, row] if _is_number(number) and _is_number(row):
            if int(number) < _NUMBERS and int(row) <= _LAST_ROW:
                return Position(int(number), _KINDS.index(kind), int(row))
    raise InputError("that isn't the id of an event; give the id of the last one that was read, such as 4711.s.42")


def _is_number(written: str) -> bool:
    return written.isascii() and written.isdigit() and len(written) <= 20


class Subject(NamedTuple):
    """Whose events are read: those of a run, or of one question of it, by its row's id."""

    run: str
    question: int | None = None


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event"):
    """Something that happened. id: the place behind which a reader continues; empty where the record hasn't it."""

    id: str = ""


class StepEnded(Event, frozen=True, kw_only=True, tag="step"):
    """A step ended.

    question: the key of its question; number: that question's place in the run, from 1; step: the step's row.
    asked: what was searched for; text: what was written; found: the titles of the paragraphs, the best first.
    failure: type and message. Texts are cut where they are long.
    """

    run: str
    question: str
    number: int
    step: int
    sequence: int
    kind: str
    state: str
    at: datetime | None
    asked: str = ""
    text: str = ""
    found: tuple[str, ...] = ()
    failure: str = ""
    prompt_tokens: int = 0
    cached_prompt_tokens: int = 0
    generated_tokens: int = 0
    milliseconds: float = 0.0
    attempts: int = 1
    adopted: bool = False


class QuestionChanged(Event, frozen=True, kw_only=True, tag="question"):
    """A question's status changed; reason: why it failed or is blocked. Texts are cut where they are long."""

    run: str
    question: str
    number: int
    status: str
    at: datetime | None
    answer: str = ""
    ended_by: str = ""
    reason: str = ""


Recorded = StepEnded | QuestionChanged


class RunProgress(Struct, frozen=True, kw_only=True):
    """How far a run is: its state, its questions by status, the number of its steps that are done."""

    state: RunState
    questions: Mapping[str, int]
    steps: int

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to the run unless a person acts."""
        return self.state not in (RunState.RUNNING, RunState.PAUSED)


def _events(of: str, steps_of: str, questions_of: str) -> sa.TextClause:
    """Return the statement of the next events of each subject; of: the type of what names them."""
    below = "< pg_snapshot_xmin(pg_current_snapshot())"
    statement = f"""
        SELECT asked.place, next.number::text, next.rank, next.row
        FROM unnest(
            CAST(:subjects AS {of}[]), CAST(:numbers AS text[]), CAST(:steps AS bigint[]), CAST(:questions AS bigint[])
        )
            WITH ORDINALITY AS asked(subject, number, step, question, place)
        CROSS JOIN LATERAL (
            (SELECT ended_in AS number, 0 AS rank, id AS row FROM steps
             WHERE {steps_of} AND ended_in {below} AND (ended_in, id) > (asked.number::xid8, asked.step)
             ORDER BY ended_in, id LIMIT :most)
            UNION ALL
            (SELECT changed_in, 1, id FROM questions
             WHERE {questions_of} AND changed_in {below} AND (changed_in, id) > (asked.number::xid8, asked.question)
             ORDER BY changed_in, id LIMIT :most)
            ORDER BY number, rank, row LIMIT :most
        ) AS next
    """  # noqa: S608 - made of constants
    return text(statement)


_OF_RUNS = _events("text", "run_id = asked.subject", "run_id = asked.subject")
_OF_QUESTIONS = _events("bigint", "question_id = asked.subject", "id = asked.subject")


def read_events(
    connection: sa.Connection, after: Mapping[Subject, Position], most: int
) -> dict[Subject, list[tuple[Position, Recorded]]]:
    """Return the next events of each subject behind a position, at most so many of each; those without any are absent.

    The connection has to have one snapshot for all statements: one for all runs, one for all single questions, and two
    more where there are events.
    """
    places = {
        subject: found
        for statement, subjects in (
            (_OF_RUNS, [each for each in after if each.question is None]),
            (_OF_QUESTIONS, [each for each in after if each.question is not None]),
        )
        if subjects
        for subject, found in _places(connection, statement, subjects, after, most).items()
    }
    # A run and a question of it may both be followed, and have events in common: each is read once.
    every = {position for found in places.values() for position in found}
    read = dict(chain(_read_steps(connection, every), _read_questions(connection, every)))
    return {subject: [(position, read[position]) for position in found] for subject, found in places.items()}


def _places(
    connection: sa.Connection, statement: Any, subjects: Sequence[Subject], after: Mapping[Subject, Position], most: int
) -> dict[Subject, list[Position]]:
    asked = {
        "subjects": [each.run if each.question is None else each.question for each in subjects],
        "numbers": [str(after[each].number) for each in subjects],
        # Of the transaction of an event of a question, all steps were before it.
        "steps": [after[each].row if after[each].rank == 0 else _LAST_ROW for each in subjects],
        "questions": [after[each].row if after[each].rank == 1 else -1 for each in subjects],
        "most": most,
    }
    found: dict[Subject, list[Position]] = {}
    for place, number, rank, row in connection.execute(statement, asked):
        found.setdefault(subjects[place - 1], []).append(Position(int(number), rank, row))
    for positions in found.values():
        # The order within the lateral part isn't one of the whole statement.
        positions.sort()
    return found


def _asked() -> Any:
    """What a step was for: the query, of a kind that has one."""
    queries = {name: kind.query for name, kind in KINDS.items() if kind.query}
    return sa.case(*((steps.c.kind == name, steps.c.request[query].astext) for name, query in queries.items()))


def _head(value: Any) -> Any:
    return sa.func.coalesce(sa.func.left(value, TEXT), "")


def _failure(value: Any) -> Any:
    return _head(value["type"].astext + ": " + value["message"].astext)


_title = sa.func.left(sa.func.coalesce(sa.func.nullif(paragraphs.c.title, ""), paragraphs.c.text), NAME)
_FOUND = (
    sa.select(sa.func.array_agg(aggregate_order_by(_title, paragraph_sets.c.rank)))
    .join_from(paragraph_sets, paragraphs, paragraph_sets.c.digest == paragraphs.c.digest)
    .where(paragraph_sets.c.step_id == steps.c.id, paragraph_sets.c.rank <= TITLES)
    .correlate(steps)
    .scalar_subquery()
)
_STEPS = (
    sa.select(
        sa.cast(steps.c.ended_in, sa.Text).label("changed"),
        steps.c.id.label("step"),
        steps.c.run_id.label("run"),
        questions.c.key.label("question"),
        (questions.c.position + 1).label("number"),
        steps.c.sequence,
        steps.c.kind,
        steps.c.state,
        steps.c.finished_at.label("at"),
        _head(_asked()).label("asked"),
        _head(steps.c.result["text"].astext).label("text"),
        sa.func.coalesce(_FOUND, sa.cast([], sa.ARRAY(sa.Text))).label("found"),
        _failure(steps.c.failure).label("failure"),
        *(
            sa.func.coalesce(steps.c[name], 0).label(name)
            for name in ("prompt_tokens", "cached_prompt_tokens", "generated_tokens", "milliseconds")
        ),
        steps.c.epoch.label("attempts"),
        steps.c.adopted_from.is_not(None).label("adopted"),
    )
    .join_from(steps, questions, steps.c.question_id == questions.c.id)
    .where(steps.c.id.in_(sa.bindparam("rows", expanding=True)))
)
_QUESTIONS = sa.select(
    sa.cast(questions.c.changed_in, sa.Text).label("changed"),
    questions.c.id.label("row"),
    questions.c.run_id.label("run"),
    questions.c.key.label("question"),
    (questions.c.position + 1).label("number"),
    questions.c.status,
    questions.c.finished_at.label("at"),
    _head(questions.c.answer).label("answer"),
    sa.func.coalesce(questions.c.ended_by, "").label("ended_by"),
    _failure(questions.c.reason).label("reason"),
).where(questions.c.id.in_(sa.bindparam("rows", expanding=True)))


def _read_steps(connection: sa.Connection, positions: Collection[Position]) -> Iterator[tuple[Position, Recorded]]:
    if rows := [position.row for position in positions if position.rank == 0]:
        for row in connection.execute(_STEPS, {"rows": rows}).mappings():
            position = Position(int(row["changed"]), 0, row["step"])
            yield position, StepEnded(**_fields(row, position, StepEnded))


def _read_questions(connection: sa.Connection, positions: Collection[Position]) -> Iterator[tuple[Position, Recorded]]:
    if rows := [position.row for position in positions if position.rank == 1]:
        for row in connection.execute(_QUESTIONS, {"rows": rows}).mappings():
            position = Position(int(row["changed"]), 1, row["row"])
            yield position, QuestionChanged(**_fields(row, position, QuestionChanged))


def _fields(row: sa.RowMapping, position: Position, of: type[Event]) -> dict[str, Any]:
    fields = {name: row[name] for name in of.__struct_fields__ if name != "id"}
    if "found" in fields:
        fields["found"] = tuple(fields["found"])
    return {"id": str(position), **fields}


def read_horizon(connection: sa.Connection) -> int:
    """Return the number below which every transaction has ended."""
    return int(connection.execute(text("SELECT pg_snapshot_xmin(pg_current_snapshot())::text")).scalar_one())


def present(connection: sa.Connection) -> Position:
    """Return the place behind which what happens from now on comes, and what is being recorded just now."""
    return Position(read_horizon(connection) - 1, len(_KINDS) - 1, _LAST_ROW)


def read_run_progress(connection: sa.Connection, ids: Collection[str]) -> dict[str, RunProgress]:
    """Return how far these runs are, in three statements for all; a run that was removed is absent."""
    desired = _pairs(connection, sa.select(runs.c.id, runs.c.desired_state).where(runs.c.id.in_(ids)))
    counts = {run: no_questions() for run in desired}
    grouped = sa.select(questions.c.run_id, questions.c.status, sa.func.count()).where(questions.c.run_id.in_(ids))
    for run, status, number in connection.execute(grouped.group_by(questions.c.run_id, questions.c.status)):
        counts[run][status] = number
    over = steps.c.state.in_([StepState.FINISHED, StepState.FAILED])
    done = sa.select(steps.c.run_id, sa.func.count()).where(
        steps.c.run_id.in_(ids), steps.c.ended_in.is_not(None), over
    )
    ended = _pairs(connection, done.group_by(steps.c.run_id))
    # Asked only where it can be: the question for one cause looks at the latest ends of every live run.
    may_be_stopped = any(each[QuestionStatus.BLOCKED] >= IN_A_ROW for each in counts.values())
    stopped = stopped_runs(connection) if may_be_stopped else ()
    return {
        run: RunProgress(
            state=state_of(desired[run], counts[run], stopped=run in stopped),
            questions=counts[run],
            steps=ended.get(run, 0),
        )
        for run in desired
    }


def read_statuses(connection: sa.Connection, ids: Collection[int]) -> dict[int, str]:
    """Return the status of these questions; one that was removed is absent."""
    found = sa.select(questions.c.id, questions.c.status).where(questions.c.id.in_(ids))
    return _pairs(connection, found)


def is_settled(connection: sa.Connection, subject: Subject) -> bool:
    """Return whether all that this snapshot has of the subject is below the horizon, and so can be read as events."""
    key: int | str = subject.run if subject.question is None else subject.question
    of_run = subject.question is None
    of_steps = (steps.c.run_id if of_run else steps.c.question_id) == key
    of_questions = (questions.c.run_id if of_run else questions.c.id) == key
    above = (
        sa.exists().where(of_steps, steps.c.ended_in >= _HORIZON),
        sa.exists().where(of_questions, questions.c.changed_in >= _HORIZON),
    )
    return not connection.execute(sa.select(sa.or_(*above))).scalar_one()


def _pairs(connection: sa.Connection, query: sa.Select[Any]) -> dict[Any, Any]:
    return {row[0]: row[1] for row in connection.execute(query)}
