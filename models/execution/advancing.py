"""Advancing questions: replay each over its record, and record what follows.

Both happen in the transaction that recorded the latest results (docs/architecture.md, "Commit, then send").
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, RowMapping, Text, bindparam, case, column, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY

from cotrail.audit.sealed_columns import head_of
from cotrail.core.actions.registry import kind
from cotrail.core.encoding import failure_of, request_of
from cotrail.core.questions import GoldParagraph
from cotrail.core.questions import Question as Asked
from cotrail.core.replay import Failed, Finished, Next, Replay, Step
from cotrail.errors import BlockedError
from models.execution.replay_cache import Begun
from models.execution.statements import NEW_STEPS, NEW_UNSENT_STEPS
from models.records.contents import Contents
from models.records.runs import RunPlan, Runs
from models.schema.rows import Rows, recordset
from models.schema.seals import question_digest
from models.schema.tables import QuestionStatus, StepState, questions

REPLAYED = 100
"""How many questions are replayed in a row at most: their transaction does nothing meanwhile, and mustn't for long."""


class Dispatch(Struct, frozen=True):
    """A message that is due: all that it holds, the queue that it belongs into, and how far its question is."""

    step_id: int
    epoch: int
    kind: str
    sequence: int = 0


class Unsaved(Struct, frozen=True, kw_only=True):
    """A step that is to follow, the run and the question it belongs to, and the head of what was recorded before."""

    run: RunPlan
    question_id: int
    step: Step
    previous: str


_ASKED = ("id", "run_id", "key", "text", "pinned", "evidence", "opened")
_LOCK = (
    select(*(questions.c[name] for name in _ASKED))
    .where(questions.c.id == func.any(bindparam("ids", type_=ARRAY(questions.c.id.type))))
    .where(questions.c.status == QuestionStatus.OPEN)
    .order_by(questions.c.id)
    .with_for_update(key_share=True)
)

_ENDS = ("status", "answer", "sentences", "collected", "weighing", "reason")
_head: ColumnElement[str] = column("head", Text)
_ended = recordset(questions.c.id, *(questions.c[name] for name in _ENDS), _head)
_ending: dict[str, Any] = {name: _ended.c[name] for name in _ENDS} | {"finished_at": func.now()}
_final = _ended.c.status != QuestionStatus.BLOCKED
_END = (
    update(questions)
    .where(questions.c.id == _ended.c.id)
    .values(_ending | {"digest": case((_final, question_digest(_ended.c.head, _ending)))})
)


def lock_questions(connection: Connection, ids: Iterable[int]) -> Sequence[RowMapping]:
    """Takes the open ones of these questions for this transaction, always in the same order."""
    return connection.execute(_LOCK, {"ids": sorted(set(ids))}).mappings().all()


def advance_questions(
    connection: Connection,
    runs: Runs,
    locked: Sequence[RowMapping],
    *,
    send: bool = True,
    state: StepState = StepState.READY,
    begun: Begun | None = None,
) -> dict[int, list[Dispatch]]:
    """Replays locked questions, records what follows, and returns each question's messages.

    They are to be sent once the transaction is committed; without `send` the maintenance process does that.
    state: in which the steps that follow are recorded; begun: the questions that this process has advanced before.
    """
    begun = begun or Begun()
    histories = begun.read(connection, [row["id"] for row in locked])
    following: list[Unsaved] = []
    ended: Rows = []
    contents = Contents()
    for row in locked:
        history = histories[row["id"]]
        head = head_of(row["opened"], history.digests)
        try:
            plan = runs.plan(connection, row["run_id"])
            outcome = begun.advance(row["id"], history, partial(_replay, plan, row, runs))
        except BlockedError as error:
            ended.append(_end(row["id"], QuestionStatus.BLOCKED, reason=failure_of(error)))
            continue
        if isinstance(outcome, Next):
            following += (Unsaved(run=plan, question_id=row["id"], step=step, previous=head) for step in outcome.steps)
            contents.add(row["id"], outcome.steps, history.records, plan)
        else:
            ended.append(ending(row["id"], outcome) | {"head": head})
    if ended:
        connection.execute(_END, {"rows": ended})
    contents.save(connection)
    return record_steps(connection, following, send=send, state=state)


def _replay(plan: RunPlan, row: RowMapping, runs: Runs) -> Replay:
    return Replay(plan.open(asked(row), runs.systems), plan.binding)


def ending(question_id: int, outcome: Finished | Failed) -> dict[str, Any]:
    """How a question ended, by the columns that say so."""
    if isinstance(outcome, Failed):
        return _end(question_id, QuestionStatus.FAILED, reason=outcome.failure)
    answer = outcome.answer
    return _end(
        question_id,
        QuestionStatus.FINISHED,
        answer=answer.text,
        sentences=answer.sentences,
        collected=[paragraph.digest for paragraph in answer.paragraphs],
        weighing=answer.weighing,
    )


def record_steps(
    connection: Connection, following: Sequence[Unsaved], *, send: bool, state: StepState
) -> dict[int, list[Dispatch]]:
    """Records steps that nobody has executed yet; what they refer to is stored already."""
    if not following:
        return {}
    rows = [
        {
            "run_id": unsaved.run.id,
            "question_id": unsaved.question_id,
            "sequence": unsaved.step.sequence,
            "kind": kind(unsaved.step.action),
            "fingerprint": unsaved.step.fingerprint,
            "shared_in": unsaved.run.shared_in,
            "request": request_of(unsaved.step.action),
            "previous": unsaved.previous,
            "state": state,
        }
        for unsaved in following
    ]
    dispatches: dict[int, list[Dispatch]] = defaultdict(list)
    for question_id, *message in connection.execute(NEW_STEPS if send else NEW_UNSENT_STEPS, {"rows": rows}):
        dispatches[question_id].append(Dispatch(*message))
    return dispatches


def asked(row: RowMapping) -> Asked:
    """A question as its system may see it: without what it is judged by."""
    return Asked(
        id=row["key"],
        text=row["text"],
        pinned=msgspec.convert(row["pinned"], GoldParagraph | None),
        evidence=msgspec.convert(row["evidence"], tuple[str | GoldParagraph, ...]),
    )


def _end(question_id: int, status: QuestionStatus, **columns: Any) -> dict[str, Any]:
    empty = dict.fromkeys(("answer", "sentences", "collected", "weighing", "reason"))
    return {"id": question_id, "status": status, **empty, **columns}
