"""Rows of steps that were never executed. Each is its own outbox entry: recorded first, sent once that is committed.

The message that has a worker carry out a step; and the histories of questions, which their steps make.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import BigInteger, Connection, RowMapping, case, column, func, select, true
from sqlalchemy.dialects.postgresql import aggregate_order_by

from cotrail.core.actions.kind import ActionKind
from cotrail.core.actions.registry import KINDS, finds_paragraphs, kind_of
from cotrail.core.history import GIVEN, Recorded, Step
from cotrail.core.questions import Hit, Paragraph
from cotrail.core.results import Failure, Result, Retrieved
from cotrail.models.records.contents import ParagraphCache
from cotrail.models.records.runs import RunPlan
from cotrail.models.schema.base import insert_rows, recordset
from cotrail.models.schema.states import StepState
from cotrail.models.schema.tables import ASKED, SERVED, paragraph_sets, questions, steps

LONGEST_ID = 100
"""Characters of a question's id that a message shows."""


class Dispatch(Struct, frozen=True):
    """A message that is due.

    step_id, epoch: all that a worker reads of the message; kind: its kind; sequence: the step's place in its question,
    which gives the message its priority; served: whether the language model of its run is, on which its queue depends;
    asked: whether somebody waits for the answer, so that it goes ahead of all others;
    about: the step in words, for people who watch the queues.
    """

    step_id: int
    epoch: int
    kind: str
    sequence: int = 0
    served: bool = False
    asked: bool = False
    about: str = ""


def described(
    step_id: int,
    epoch: int,
    kind: str,
    sequence: int,
    served: bool,  # noqa: FBT001 - rows come in this order
    asked: bool,  # noqa: FBT001
    run_id: str,
    question: str,
) -> Dispatch:
    """Return a step's message with what it is about: its run's id, its question's id, and its place there from 1.

    Texts stay in PostgreSQL. A question's id comes from a file, so it is written as Python writes strings, and cut.
    """
    about = f"run {run_id}, question {question[:LONGEST_ID]!r}, step {sequence + 1}"
    return Dispatch(step_id, epoch, kind, sequence, served, asked, about)


_COLUMNS = ("run_id", "question_id", "sequence", "kind", "fingerprint", "shared_in", "request", "previous", "state")
_MESSAGE = (steps.c.question_id, steps.c.id, steps.c.epoch, steps.c.kind, steps.c.sequence)

# A scalar subquery rather than a join, see `cotrail.models.schema.base`.
_key = select(questions.c.key).where(questions.c.id == steps.c.question_id).correlate(steps).scalar_subquery()

DESCRIBED = (steps.c.id, steps.c.epoch, steps.c.kind, steps.c.sequence, SERVED, ASKED, steps.c.run_id, _key)
"""The columns of a step's message, in the order of the arguments of `cotrail.models.records.steps.described`."""

_NEW_SENT = insert_rows(steps, *_COLUMNS, sent_at=func.now()).returning(*_MESSAGE)
_NEW_UNSENT = insert_rows(steps, *_COLUMNS).returning(*_MESSAGE)


class NewStep(Struct, frozen=True, kw_only=True):
    """A step to be recorded, its run and question, and the head of what was recorded of the question before.

    question_id: that of the question's row; question: its own, which a person knows.
    """

    run: RunPlan
    question_id: int
    question: str
    step: Step
    previous: str


def record_steps(
    connection: Connection, following: Sequence[NewStep], *, send: bool, state: StepState
) -> dict[int, list[Dispatch]]:
    """Record steps, whose paragraphs and demonstrations are stored already; returns each question's messages.

    send: the caller sends the messages as soon as this is committed; without it, maintenance sends or admits the steps.
    """
    # As where questions end, or where further steps that were yielded together are still under way.
    if not following:
        return {}
    rows = [_row(new) | {"state": state} for new in following]
    descriptions = {new.question_id: (new.run.served, new.run.asked, new.run.id, new.question) for new in following}
    dispatches: dict[int, list[Dispatch]] = defaultdict(list)
    recorded = connection.execute(_NEW_SENT if send else _NEW_UNSENT, {"rows": rows})
    for question_id, step_id, epoch, kind, sequence in recorded:
        dispatches[question_id].append(described(step_id, epoch, kind, sequence, *descriptions[question_id]))
    return dispatches


def _row(new: NewStep) -> dict[str, object]:
    action = new.step.action
    kind = kind_of(action)
    return {
        "run_id": new.run.id,
        "question_id": new.question_id,
        "sequence": new.step.sequence,
        "kind": kind.name,
        "fingerprint": new.step.fingerprint,
        "shared_in": new.run.shared_in,
        "request": kind.request(action),
        "previous": new.previous,
    }


_HIT = (paragraph_sets.c.digest, paragraph_sets.c.paragraph_id, paragraph_sets.c.score)
_FOUND = (
    select(func.jsonb_agg(aggregate_order_by(func.jsonb_build_array(*_HIT), paragraph_sets.c.rank)))
    .where(paragraph_sets.c.step_id == steps.c.id)
    .correlate(steps)
    .scalar_subquery()
)
HITS = case((steps.c.kind.in_(filter(finds_paragraphs, KINDS)), _FOUND)).label("hits")
"""What a step found, in the order of rank: digest, id in the corpus and score of each paragraph."""

RECORD = (steps.c.kind, steps.c.fingerprint, steps.c.state, steps.c.result, steps.c.failure, steps.c.worker, HITS)
"""The columns of a step that `read_records` needs."""


def read_result(kind: ActionKind[Any, Any], row: RowMapping, contents: Mapping[str, Paragraph]) -> Result:
    """Return the result of a row of result and `HITS`; raises what reading a damaged record does."""
    if kind.finds_paragraphs:
        lists = Retrieved.read_lists(row["result"])
        hits = (
            Hit(
                paragraph=Paragraph(id=paragraph_id, title=contents[digest].title, text=contents[digest].text),
                rank=rank,
                score=float(score),
                lists=lists[rank - 1] if rank <= len(lists) else (),
            )
            for rank, (digest, paragraph_id, score) in enumerate(row["hits"] or (), start=1)
        )
        return Retrieved(hits=tuple(hits))
    result: Result = msgspec.convert(row["result"], kind.result)
    return result


class History(Struct, frozen=True, kw_only=True):
    """A question's steps in sequence, as the replay driver takes them, and the digests of those that have ended.

    ended: how many steps have ended before the first that hasn't.
    """

    records: tuple[Recorded, ...]
    digests: tuple[str, ...]
    ended: int

    @property
    def beginning(self) -> "History":
        """The steps before the first that hasn't ended."""
        return History(records=self.records[: self.ended], digests=self.digests[: self.ended], ended=self.ended)


_NOTHING = History(records=(), digests=(), ended=0)
_asked = recordset(questions.c.id, column("known", BigInteger))
_before = steps.alias("before")
_beginning = (
    select(func.array_agg(aggregate_order_by(_before.c.digest, _before.c.sequence)).label("digests"))
    .where(_before.c.question_id == _asked.c.id, _before.c.sequence < _asked.c.known)
    .lateral("beginning")
)
_HISTORY = (
    select(steps.c.question_id, _beginning.c.digests.label("beginning"), steps.c.digest, *RECORD)
    .select_from(_asked.join(_beginning, true()).join(steps, steps.c.question_id == _asked.c.id))
    .where(steps.c.sequence >= _asked.c.known)
    .order_by(steps.c.question_id, steps.c.sequence)
)
"""For each question, its steps from the first that isn't known, and the digests of those before it."""


def read_histories(
    connection: Connection,
    question_ids: Sequence[int],
    paragraphs: ParagraphCache,
    earlier: Mapping[int, History] = MappingProxyType({}),
) -> dict[int, History]:
    """Return the steps of each of these questions.

    earlier: histories that are known; the steps that had ended then aren't read again, unless they have changed.
    """
    beginnings = {each: earlier[each].beginning if each in earlier else _NOTHING for each in question_ids}
    query_rows = [{"id": each, "known": history.ended} for each, history in beginnings.items()]
    rows: dict[int, list[RowMapping]] = {question_id: [] for question_id in question_ids}
    for row in connection.execute(_HISTORY, {"rows": query_rows}).mappings():
        rows[row["question_id"]].append(row)
    # Only what is read with the rows shows whether the known steps still hold; where not, all is read once more.
    outdated = [each for each, history in beginnings.items() if not _continues(history, rows[each])]
    current = [each for each in question_ids if each not in outdated]
    records = iter(read_records(connection, [row for each in current for row in rows[each]], paragraphs))
    histories = {each: _history(beginnings[each], rows[each], records) for each in current}
    return histories | read_histories(connection, outdated, paragraphs) if outdated else histories


def _continues(history: History, rows: Sequence[RowMapping]) -> bool:
    """Return whether the steps before these rows are still those that are known.

    Their digests tell, as a step's digest covers all of it: `cotrail retry` opens failed steps again.
    """
    return not history.ended or (bool(rows) and tuple(rows[0]["beginning"] or ()) == history.digests)


def _history(beginning: History, rows: Sequence[RowMapping], records: Iterator[Recorded]) -> History:
    """Return a history continued by these rows; records: an iterator whose next items are the rows' records."""
    digests = [row["digest"] for row in rows]
    return History(
        records=beginning.records + tuple(islice(records, len(rows))),
        digests=beginning.digests + tuple(digest for digest in digests if digest is not None),
        ended=beginning.ended + next((number for number, digest in enumerate(digests) if digest is None), len(digests)),
    )


def read_records(connection: Connection, rows: Sequence[RowMapping], paragraphs: ParagraphCache) -> list[Recorded]:
    """Return rows of the columns `RECORD` as the replay driver takes them."""
    contents = paragraphs.read(connection, (digest for row in rows for digest, *_ in row["hits"] or ()))
    return [_recorded(row, contents) for row in rows]


def _recorded(row: RowMapping, contents: Mapping[str, Paragraph]) -> Recorded:
    common = {"kind": row["kind"], "fingerprint": row["fingerprint"], "given": row["worker"] == GIVEN}
    try:
        match row["state"]:
            case StepState.FINISHED:
                return Recorded(**common, outcome=read_result(KINDS[row["kind"]], row, contents))
            case StepState.FAILED:
                return Recorded(**common, outcome=msgspec.convert(row["failure"], Failure))
            case _:
                return Recorded(**common)
    except (msgspec.ValidationError, TypeError, ValueError, KeyError) as error:
        return Recorded(**common, unreadable=str(error))
