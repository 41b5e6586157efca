"""The records of a question, gathered by the step that they belong to, whatever their order."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from cotrail.audit.findings import Finding
from cotrail.audit.records import Record, Row, number, text

WITHIN = ("steps", "prompts", "attempts", "paragraph_sets", "sentences")
"""The tables of a question's records, in the order of a step's."""

_NUMBERED = {"attempts": "epoch", "paragraph_sets": "rank"}


class StepRows(Struct, frozen=True):
    """A step's row and those that belong to it, in the order of the records."""

    step: Row
    prompts: list[Row] = []
    attempts: list[Row] = []
    paragraph_sets: list[Row] = []
    sentences: list[Row] = []


class QuestionRows(Struct, frozen=True):
    """A question's row, its steps in the order of the records, and rows that belong to none of these."""

    question: Row
    steps: list[StepRows] = field(default_factory=list)
    strays: list[Record] = field(default_factory=list)


class Gathered(Struct, frozen=True):
    """A question's rows; the steps of other questions that stood among them; what stood at a wrong place."""

    rows: QuestionRows
    foreign: list[StepRows]
    findings: list[Finding]


def gather(question: Row, records: Sequence[Record]) -> Gathered:
    """The records that follow a question's, up to the next question's."""
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
    """The records that stand behind one that they precede."""
    last = (-1, 0, 0)
    for record in records:
        place = _place(record, places)
        if place < last:
            key, detail = text(question, "key"), "it stands behind what follows it"
            rank = number(record.row, "rank") if "rank" in record.row else None
            yield Finding(table=record.table, what="reordered", question=key, rank=rank, detail=detail)
        last = max(last, place)


def _place(record: Record, places: dict[str, int]) -> tuple[int, int, int]:
    """Where a record belongs; those of no step stand behind all others."""
    step = text(record.row, "id" if record.table == "steps" else "step_id")
    numbered = _NUMBERED.get(record.table)
    return (
        places.get(step, len(places)),
        WITHIN.index(record.table),
        0 if numbered is None else number(record.row, numbered),
    )
