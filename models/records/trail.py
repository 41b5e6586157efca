"""Reading a run's audit trail out of the store: rows as records, as the digests take them."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import BigInteger, ColumnElement, Connection, Select, Table, Text, bindparam, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY

from cotrail.audit import referenced_contents
from cotrail.audit.records import COLUMNS, Record, Row, number
from cotrail.models.records.questions import read_question_ids
from cotrail.models.schema.seals import texts
from cotrail.models.schema.tables import (
    attempts,
    demonstrations,
    experiments,
    paragraph_sets,
    paragraphs,
    questions,
    runs,
    sentences,
    steps,
)

_ids = func.any(bindparam("ids", type_=ARRAY(BigInteger)))
_steps = func.any(bindparam("steps", type_=ARRAY(BigInteger)))
_digests = func.any(bindparam("digests", type_=ARRAY(Text)))


def _texts(table: Table, *where: ColumnElement[bool]) -> Select[Any]:
    """Select a table's records: the columns that a trail has, which are not those that only steer the work."""
    names = [column.name for column in table.columns if column.name in COLUMNS[table.name]]
    columns = [column.label(name) for name, column in zip(names, texts(table, names), strict=True)]
    return cast("Select[Any]", select(*columns).where(*where))


def _belonging(table: Table) -> Select[Any]:
    """Select rows of these steps, and rows of these questions that belong to none of the steps."""
    return _texts(table, or_(table.c.step_id == _steps, table.c.question_id == _ids))


_RUN = _texts(runs, runs.c.id == bindparam("run"))
_EXPERIMENT = _texts(experiments, experiments.c.id == bindparam("experiment"))
_QUESTIONS = _texts(questions, questions.c.id == _ids).order_by(questions.c.position, questions.c.id)
_STEPS = _texts(steps, steps.c.question_id == _ids).order_by(steps.c.question_id, steps.c.sequence, steps.c.id)
_WITHIN = {
    "attempts": _texts(attempts, attempts.c.step_id == _steps).order_by(attempts.c.step_id, attempts.c.epoch),
    "paragraph_sets": _belonging(paragraph_sets).order_by(paragraph_sets.c.step_id, paragraph_sets.c.rank),
    "sentences": _belonging(sentences).order_by(sentences.c.step_id, sentences.c.position),
}
_CONTENTS = {
    table.name: _texts(table, table.c.digest == _digests).order_by(table.c.digest)
    for table in (demonstrations, paragraphs)
}

_FOREIGN = _texts(
    steps,
    steps.c.run_id == bindparam("run"),
    steps.c.question_id.not_in(select(questions.c.id).where(questions.c.run_id == bindparam("run"))),
).order_by(steps.c.id)
"""Selects steps of a run that are no question's of it: there are none unless the store was changed by hand."""


def read_trail(connection: Connection, run_id: str, question_ids: Sequence[int] | None = None) -> Iterator[Record]:
    """Yield a run's records in their order, or those of some of its questions.

    In a transaction of the isolation level REPEATABLE READ they all show the same moment.
    """
    [run] = _rows(connection, _RUN, run=run_id)
    for row in _rows(connection, _EXPERIMENT, experiment=run["experiment_id"]):
        yield Record("experiments", row)
    yield Record("runs", run)
    reader = _Reader(connection)
    yield from reader.contents([referenced_contents.readable(referenced_contents.references_of_run, run)])
    ids = read_question_ids(connection, run_id) if question_ids is None else array("q", question_ids)
    for start in range(0, len(ids), referenced_contents.CHUNK_QUESTIONS):
        yield from reader.questions(ids[start : start + referenced_contents.CHUNK_QUESTIONS].tolist())
    if question_ids is None:
        yield from reader.foreign(run_id)


class _Reader:
    """Reader of records that yields contents before the records that refer to them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._read: set[str] = set()

    def questions(self, ids: Sequence[int]) -> Iterator[Record]:
        """Yield these questions with all that belongs to them, and the contents that weren't read before."""
        question_rows = _rows(self._connection, _QUESTIONS, ids=ids)
        step_rows = _rows(self._connection, _STEPS, ids=ids)
        within, strays = self._within(step_rows, ids)
        sets = (record.row for rows in within.values() for record in rows if record.table == "paragraph_sets")
        for group in referenced_contents.groups_of(question_rows, step_rows, sets):
            yield from self.contents(group)
        of_question = defaultdict(list)
        for step in step_rows:
            of_question[step["question_id"]].append(step)
        for question in question_rows:
            yield Record("questions", question)
            yield from _with_their_own(of_question[question["id"]], within)
            yield from strays[question["id"]]

    def contents(self, references: Sequence[referenced_contents.References]) -> Iterator[Record]:
        """Yield the contents that are referred to and weren't read before."""
        for table, new in referenced_contents.unwritten(references, self._read):
            for row in _rows(self._connection, _CONTENTS[table], digests=new) if new else ():
                yield Record(table, row)

    def foreign(self, run_id: str) -> Iterator[Record]:
        """Yield the steps of a run that belong to none of its questions."""
        step_rows = _rows(self._connection, _FOREIGN, run=run_id)
        within, _ = self._within(step_rows, [])
        yield from _with_their_own(step_rows, within)

    def _within(
        self, step_rows: Sequence[Row], ids: Sequence[int]
    ) -> tuple[dict[str | None, list[Record]], dict[str | None, list[Record]]]:
        """Return what belongs to these steps, by the step's id; and what belongs to none of them, by the question's."""
        of_step: dict[str | None, list[Record]] = {step["id"]: [] for step in step_rows}
        strays: dict[str | None, list[Record]] = defaultdict(list)
        for table, query in _WITHIN.items():
            for row in _rows(self._connection, query, ids=ids, steps=[number(step, "id") for step in step_rows]):
                where = of_step.get(row["step_id"])
                (strays[row["question_id"]] if where is None else where).append(Record(table, row))
        return of_step, strays


def _with_their_own(step_rows: Iterable[Row], within: Mapping[str | None, Sequence[Record]]) -> Iterator[Record]:
    for step in step_rows:
        yield Record("steps", step)
        yield from within[step["id"]]


def _rows(connection: Connection, query: Select[Any], **parameters: object) -> list[Row]:
    return [dict(row) for row in connection.execute(query, parameters).mappings()]
