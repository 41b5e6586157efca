"""Steps that may be carried out again, and what they came to compared with what was recorded of them.

Repeats: the runs that ask the same questions with other seeds.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import BigInteger, Connection, RowMapping, Select, Text, column, func, select
from sqlalchemy.dialects.postgresql import aggregate_order_by

from cotrail.core.history import GIVEN, Failed, Finished, Recorded
from cotrail.core.repeats import REPEAT, Repeat, RepeatedSteps, read_repeat
from cotrail.core.replay import advance
from cotrail.errors import BlockedError
from cotrail.models.queries.runs import RunRecord
from cotrail.models.records.contents import ParagraphCache
from cotrail.models.records.projects import in_project, qualified
from cotrail.models.records.questions import MOST_REPLAYED, binding_of, ending, halts_of, question_of, read_question_ids
from cotrail.models.records.runs import FindSystem, Runs
from cotrail.models.records.steps import read_histories
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


# Replaying a run: running its system's code over the recorded steps, without models or indexes; nothing is changed.

COMPARED_COLUMNS = ("answer", "sentences", "collected", "weighing", "reason")
"""The columns of an ended question that are compared, in addition to its status."""

MOST_CHARACTERS = 200
"""The largest number of characters shown of a value that differs."""


class Replayed(Struct, frozen=True, kw_only=True):
    """A replayed question; divergence: where the code now departs from its record, empty where it agrees.

    edited: the numbers of the steps that a person edited.
    """

    key: str
    status: str
    steps: int
    divergence: str
    edited: tuple[int, ...] = ()


def replay_run(connection: Connection, run_id: str, find_system: FindSystem) -> Iterator[Replayed]:
    """Replay every question of a run, in their order."""
    runs, paragraphs = Runs(find_system), ParagraphCache()
    ids = read_question_ids(connection, run_id)
    for start in range(0, len(ids), MOST_REPLAYED):
        chunk = ids[start : start + MOST_REPLAYED].tolist()
        query = select(questions).where(questions.c.id.in_(chunk)).order_by(questions.c.position)
        rows = connection.execute(query).mappings().all()
        histories = read_histories(connection, chunk, paragraphs)
        edited = _edited(connection, chunk)
        for row in rows:
            history = histories[row["id"]].records
            divergence = _divergence(connection, row, history, runs)
            yield Replayed(
                key=row["key"],
                status=row["status"],
                steps=len(history),
                divergence=divergence,
                edited=tuple(edited[row["id"]]),
            )


def _edited(connection: Connection, ids: Sequence[int]) -> dict[int, list[int]]:
    """Return the numbers of the steps of each of these questions that a person edited."""
    query = select(steps.c.question_id, steps.c.sequence).where(steps.c.question_id.in_(ids), steps.c.edit.is_not(None))
    edited = defaultdict[int, list[int]](list)
    for question_id, sequence in connection.execute(query.order_by(steps.c.question_id, steps.c.sequence)):
        edited[question_id].append(sequence)
    return edited


def _divergence(connection: Connection, row: RowMapping, history: Sequence[Recorded], runs: Runs) -> str:
    try:
        plan = runs.plan(connection, row["run_id"])
        halts, system = halts_of(row), plan.open(question_of(row), runs.find_system)
        outcome = advance(system, halts.seen_by_system(history), binding_of(row, plan), halts.halt)
    except BlockedError as error:
        return str(error)
    if not isinstance(outcome, Finished | Failed):
        ended = row["status"] in (QuestionStatus.FINISHED, QuestionStatus.FAILED)
        return f"it is recorded as {row['status']}, and the code now asks for more" if ended else ""
    return _difference(row, msgspec.json.decode(msgspec.json.encode(ending(row["id"], outcome))))


def _difference(row: RowMapping, now: dict[str, Any]) -> str:
    """Return where the record of a question differs from how it ends now; empty for one that hasn't ended."""
    if row["status"] in (QuestionStatus.CANCELLED, QuestionStatus.BLOCKED, QuestionStatus.OPEN):
        return ""
    if row["status"] != now["status"]:
        return f"it is recorded as {row['status']}, and would be {now['status']} now"
    different = [name for name in COMPARED_COLUMNS if row[name] != now[name]]
    # Records of earlier versions have none, which is no difference.
    if row["ended_by"] not in (None, now["ended_by"]):
        different.append("ended_by")
    if not different:
        return ""
    name = different[0]
    return f"its {name} is recorded as {_shown(row[name])}, and would be {_shown(now[name])} now"


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."
