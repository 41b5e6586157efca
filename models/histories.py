"""Histories: the recorded steps of questions, as the replay driver takes them."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, RowMapping, bindparam, case, func, select
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by

from cotrail.actions import Embedded, Entailed, Failure, Generated, Result, Retrieved
from cotrail.forking import GIVEN
from cotrail.paragraphs import Hit, Paragraph
from cotrail.replay import Recorded
from models.tables import StepState, paragraph_sets, paragraphs, questions, steps

SEARCHES = ("retrieve", "lookup")
"""The kinds of steps that find paragraphs."""

_RESULTS: dict[str, type[Generated | Embedded | Entailed]] = {
    "reason": Generated,
    "read": Generated,
    "embed": Embedded,
    "entail": Entailed,
}
"""What the other kinds result in."""

_HIT = (paragraph_sets.c.paragraph_id, paragraphs.c.title, paragraphs.c.text, paragraph_sets.c.score)
_HITS = (
    select(
        func.jsonb_agg(
            aggregate_order_by(
                func.jsonb_build_array(*_HIT),
                paragraph_sets.c.rank,
            )
        )
    )
    .join_from(paragraph_sets, paragraphs, paragraph_sets.c.digest == paragraphs.c.digest)
    .where(paragraph_sets.c.step_id == steps.c.id)
    .correlate(steps)
    .scalar_subquery()
)

RECORD = (
    steps.c.kind,
    steps.c.fingerprint,
    steps.c.state,
    steps.c.result,
    steps.c.failure,
    steps.c.worker,
    case((steps.c.kind.in_(SEARCHES), _HITS)).label("hits"),
)
"""What `recorded` reads of a step."""


class History(Struct, frozen=True):
    """A question's steps in sequence, as the replay driver takes them, and the digests of those that have ended."""

    records: tuple[Recorded, ...] = ()
    digests: tuple[str, ...] = ()


_HISTORY = (
    select(steps.c.question_id, steps.c.digest, *RECORD)
    .where(steps.c.question_id == func.any(bindparam("ids", type_=ARRAY(questions.c.id.type))))
    .order_by(steps.c.question_id, steps.c.sequence)
)


def read_histories(connection: Connection, question_ids: Sequence[int]) -> dict[int, History]:
    """The steps of each of these questions."""
    rows: dict[int, list[RowMapping]] = {question_id: [] for question_id in question_ids}
    for row in connection.execute(_HISTORY, {"ids": question_ids}).mappings():
        rows[row["question_id"]].append(row)
    return {question_id: _history(of_question) for question_id, of_question in rows.items()}


def _history(rows: Sequence[RowMapping]) -> History:
    return History(
        records=tuple(recorded(row) for row in rows),
        digests=tuple(row["digest"] for row in rows if row["digest"] is not None),
    )


def recorded(row: RowMapping) -> Recorded:
    """A row of the columns `RECORD` as the replay driver takes it."""
    common = {"kind": row["kind"], "fingerprint": row["fingerprint"], "given": row["worker"] == GIVEN}
    try:
        match row["state"]:
            case StepState.FINISHED:
                return Recorded(**common, outcome=_result(row))
            case StepState.FAILED:
                return Recorded(**common, outcome=msgspec.convert(row["failure"], Failure))
            case _:
                return Recorded(**common)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        return Recorded(**common, unreadable=str(error))


def _result(row: RowMapping) -> Result:
    if row["kind"] in SEARCHES:
        return Retrieved(hits=tuple(hit(rank, *parts) for rank, parts in enumerate(row["hits"] or (), start=1)))
    return msgspec.convert(row["result"], _RESULTS[row["kind"]])


def hit(rank: int, paragraph_id: str, title: str, text: str, score: Any) -> Hit:
    """A row of a paragraph set as the system saw it."""
    return Hit(paragraph=Paragraph(id=paragraph_id, title=title, text=text), rank=rank, score=float(score))
