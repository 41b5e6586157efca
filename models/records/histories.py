"""Histories: the recorded steps of questions, as the replay driver takes them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

import msgspec
from msgspec import Struct
from sqlalchemy import BigInteger, Connection, RowMapping, column, func, select, true
from sqlalchemy.dialects.postgresql import aggregate_order_by

from cotrail.core.actions.registry import KINDS, finds_paragraphs
from cotrail.core.history import GIVEN, Recorded
from cotrail.core.questions import Paragraph
from cotrail.core.results import Failure
from cotrail.models.records.paragraphs import ParagraphCache, hits_column, read_result
from cotrail.models.schema.base import recordset
from cotrail.models.schema.states import StepState
from cotrail.models.schema.tables import questions, steps

_HITS = hits_column(filter(finds_paragraphs, KINDS))

RECORD = (steps.c.kind, steps.c.fingerprint, steps.c.state, steps.c.result, steps.c.failure, steps.c.worker, _HITS)
"""The columns of a step that `read_records` needs."""


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
