"""Rows of questions: locked for a transaction, as their systems see them, and how they end.

Ids of a run's questions, and questions as they stand in lists.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, RowMapping, Text, bindparam, case, column, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY

from cotrail.core.binding import Binding
from cotrail.core.history import Failed, Finished, Halts, ended_by
from cotrail.core.questions import GoldParagraph, JudgedAnswer, Question, read_kinds
from cotrail.core.results import Failure
from cotrail.errors import BlockedError
from cotrail.models.records.budgets import reason_here
from cotrail.models.records.runs import RunPlan
from cotrail.models.schema.base import Rows, recordset
from cotrail.models.schema.seals import question_digest
from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.tables import questions

FETCHED_IDS = 10_000
"""The number of ids fetched at once: a run may have millions."""


def read_question_ids(connection: Connection, run_id: str) -> "array[int]":
    """Return the ids of a run's questions, by position."""
    query = select(questions.c.id).where(questions.c.run_id == run_id)
    ordered = query.order_by(questions.c.position, questions.c.id).execution_options(yield_per=FETCHED_IDS)
    return array("q", connection.execute(ordered).scalars())


MOST_REPLAYED = 100
"""The largest number of questions replayed in a row: their transaction is idle meanwhile, and mustn't be for long."""

_ASKED = ("id", "run_id", "key", "text", "answers", "pinned", "evidence", "judged", "kind", "opened", "halted")
_LOCK = (
    select(*(questions.c[name] for name in _ASKED))
    .where(questions.c.id == func.any(bindparam("ids", type_=ARRAY(questions.c.id.type))))
    .where(questions.c.status == QuestionStatus.OPEN)
    .order_by(questions.c.id)
    # FOR NO KEY UPDATE: excludes other transactions that advance the question, and lets those in that insert its steps,
    # sentences and paragraphs, whose foreign keys lock it FOR KEY SHARE.
    .with_for_update(key_share=True)
)

_ENDS = ("status", "answer", "sentences", "collected", "weighing", "reason", "ended_by")
_head: ColumnElement[str] = column("head", Text)
_ended = recordset(questions.c.id, *(questions.c[name] for name in _ENDS), _head)
_ending: dict[str, Any] = {name: _ended.c[name] for name in _ENDS} | {"finished_at": func.now()}
# A blocked question is opened again once its cause is fixed, so no digest seals it.
_final = _ended.c.status != QuestionStatus.BLOCKED
_END = (
    update(questions)
    .where(questions.c.id == _ended.c.id)
    .values(_ending | {"digest": case((_final, question_digest(_ended.c.head, _ending)))})
)


def lock_questions(connection: Connection, ids: Iterable[int]) -> Sequence[RowMapping]:
    """Lock the open ones of these questions for this transaction.

    Always in the order of their ids: transactions that lock some of the same questions then can't deadlock.
    """
    return connection.execute(_LOCK, {"ids": sorted(set(ids))}).mappings().all()


def question_of(row: RowMapping) -> Question:
    """Return a question as its system may see it: without the answers and paragraphs that it is judged by.

    A judge sees the answers.
    """
    judged = msgspec.convert(row["judged"] or (), tuple[JudgedAnswer, ...])
    return Question(
        id=row["key"],
        text=row["text"],
        pinned=msgspec.convert(row["pinned"], GoldParagraph | None),
        evidence=msgspec.convert(row["evidence"], tuple[str | GoldParagraph, ...]),
        answers=tuple(row["answers"]) if judged else (),
        judged=judged,
    )


def binding_of(row: RowMapping, plan: RunPlan) -> Binding:
    """Return what decides the results of a question; its system doesn't see the kinds, which may say the answer."""
    return plan.bound(row["key"], read_kinds(row["kind"]))


def halts_of(row: RowMapping) -> Halts:
    """Return where budgets ended a question."""
    return msgspec.convert(row["halted"] or {}, Halts)


def ending(question_id: int, outcome: Finished | Failed) -> dict[str, Any]:
    """Return the columns of a question that record how it ended."""
    if isinstance(outcome, Failed):
        return _end(question_id, QuestionStatus.FAILED, reason=outcome.failure, ended_by=ended_by(outcome))
    answer = outcome.answer
    return _end(
        question_id,
        QuestionStatus.FINISHED,
        answer=answer.text,
        sentences=answer.sentences,
        collected=[paragraph.digest for paragraph in answer.paragraphs],
        weighing=answer.details,  # the column is sealed, so it keeps the name of the first details
        ended_by=ended_by(outcome),
    )


def blocking(question_id: int, error: BlockedError) -> dict[str, Any]:
    """Return the columns of a question that record what blocks it."""
    return _end(question_id, QuestionStatus.BLOCKED, reason=reason_here(error))


def record_endings(connection: Connection, endings: Rows) -> None:
    """Record how questions ended or what blocks them; each row has the question's `head` too."""
    if endings:
        connection.execute(_END, {"rows": endings})


def _end(question_id: int, status: QuestionStatus, **columns: Any) -> dict[str, Any]:
    empty = dict.fromkeys(name for name in _ENDS if name != "status")
    return {"id": question_id, "status": status, **empty, **columns}


class QuestionInList(Struct, frozen=True, kw_only=True):
    """A question in a list.

    number: its place in the run, from 1; reason: why it failed or is blocked.
    ended_by: what ended it (`cotrail.core.history`); empty where nothing did.
    """

    number: int
    question_id: str
    question: str
    kinds: Mapping[str, str]
    status: QuestionStatus
    answer: str | None
    reason: Failure | None
    ended_by: str


def in_list(row: RowMapping) -> dict[str, Any]:
    """The fields of a `QuestionInList`, from a question's row."""
    return {
        "number": row["position"] + 1,
        "question_id": row["key"],
        "question": row["text"],
        "kinds": read_kinds(row["kind"]),
        "status": QuestionStatus(row["status"]),
        "answer": row["answer"],
        "reason": msgspec.convert(row["reason"], Failure | None),
        "ended_by": row["ended_by"] or "",
    }
