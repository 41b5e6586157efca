"""The rows of a question, grouped by the step that they belong to, whatever their order."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from cotrail.audit.findings import Finding
from cotrail.audit.records import Record, Row, number, text

WITHIN = ("steps", "prompts", "attempts", "paragraph_sets", "sentences")
"""The tables below `questions`, in the order of the records of a step."""

_NUMBERED = {"attempts": "epoch", "paragraph_sets": "rank"}


class StepRows(Struct, frozen=True):
    """A step's row and the rows that belong to it."""

    step: Row
    prompts: list[Row] = []
    attempts: list[Row] = []
    paragraph_sets: list[Row] = []
    sentences: list[Row] = []


class QuestionRows(Struct, frozen=True):
    """A question's row, its steps by sequence, and strays: rows that belong to none of these steps."""

    question: Row
    steps: list[StepRows] = field(default_factory=list)
    strays: list[Record] = field(default_factory=list)


class Gathered(Struct, frozen=True):
    """A question's rows; foreign: steps of other questions found among them; findings: records out of order."""

    rows: QuestionRows
    foreign: list[StepRows]
    findings: list[Finding]


def gather(question: Row, records: Sequence[Record]) -> Gathered:
    """Group the records between a question's row and the next question's."""
    belonging: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record.table != "steps":
            belonging[text(record.row, "step_id")].append(record)
    steps = sorted(
        (record.row for record in records if record.table == "steps"), key=lambda step: number(step, "sequence")
    )
    own: list[StepRows] = []
    foreign: list[StepRows] = []
    for step in steps:
        rows = _step_rows(step, belonging.pop(text(step, "id"), ()))
        (own if step["question_id"] == question["id"] else foreign).append(rows)
    strays = [record for left in belonging.values() for record in left]
    places = {text(rows.step, "id"): place for place, rows in enumerate([*own, *foreign])}
    return Gathered(QuestionRows(question, own, strays), foreign, list(_reordered(question, records, places)))


def _step_rows(step: Row, belonging: Iterable[Record]) -> StepRows:
    rows: dict[str, list[Row]] = {table: [] for table in WITHIN[1:]}
    for record in belonging:
        rows[record.table].append(record.row)
    for table, name in _NUMBERED.items():
        rows[table].sort(key=lambda row, name=name: number(row, name))  # type: ignore[misc]
    return StepRows(step, **rows)


def _reordered(question: Row, records: Iterable[Record], places: dict[str, int]) -> Iterator[Finding]:
    """Find records that come after one that they should precede."""
    last = (-1, 0, 0)
    for record in records:
        place = _place(record, places)
        if place < last:
            key, detail = text(question, "key"), "it comes after what it should precede"
            rank = number(record.row, "rank") if "rank" in record.row else None
            yield Finding(table=record.table, what="reordered", question=key, rank=rank, detail=detail)
        last = max(last, place)


def _place(record: Record, places: dict[str, int]) -> tuple[int, int, int]:
    """Sort key of a record; records that belong to no step come last."""
    step = text(record.row, "id" if record.table == "steps" else "step_id")
    numbered = _NUMBERED.get(record.table)
    return (
        places.get(step, len(places)),
        WITHIN.index(record.table),
        0 if numbered is None else number(record.row, numbered),
    )
