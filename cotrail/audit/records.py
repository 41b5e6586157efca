"""Records of the audit trail: rows of its tables, each column as PostgreSQL's text output.

A run's records come in a fixed order, whether they are read from a store or from a bundle:

    bundle                                     only in a bundle: the format, and the version of cotrail that wrote it
    experiments, runs                          the experiment where the run is part of one
    demonstrations, paragraphs                 before the first question that refers to them
    questions                                  by position, each followed by its steps
        steps                                  by sequence, each followed by
            prompts                            only in a bundle: the prompt as text
            attempts, paragraph_sets, sentences
    end                                        only in a bundle: the number of lines before it, and their SHA-256

The columns that digests cover are in `columns.toml`, for anyone to recompute these. A digest is the SHA-256 of a JSON
array of texts, as Python's `json.dumps(texts, ensure_ascii=False)` writes it: each column as PostgreSQL writes it,
times in UTC as `2026-01-31T23:59:59.000001Z`, NULL as null.

    run.opened       its experiment's columns, its configuration
    question.opened  run.opened, the question as it was submitted
    step.previous    the head of the question before the steps that were yielded together with this one
    step.digest      every column, `previous` among them; its earlier attempts
    question.digest  every column, its head
    run.digest       every column, the root of the tree over its questions' digests (`cotrail.audit.question_sequence`)

The head of a question is the SHA-256 of `question.opened` and its ended steps' digests in sequence, written one behind
the other. The columns are listed apart from the tables' definitions: they are the record's format (`FORMAT`), which a
further column of a table alone doesn't change.
"""

import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct, field

from cotrail.audit.findings import Finding
from cotrail.errors import BundleError

# Columns of the records by table, in their order, and those that digests cover: `columns.toml`.

_Columns = dict[str, tuple[str, ...]]
_COVERED, COLUMNS, _NULLABLE, _NUMBERS, _FRACTIONS = msgspec.convert(
    tuple(tomllib.loads(Path(__file__).with_name("columns.toml").read_text("utf-8")).values()),
    tuple[_Columns, _Columns, _Columns, _Columns, _Columns],
)
EXPERIMENT, RUN_OPENED, RUN, QUESTION_OPENED, QUESTION, STEP, ATTEMPT = _COVERED.values()

TIMES = frozenset({"created_at", "sent_at", "not_before", "lease_until", "started_at", "finished_at", "ended_at"})
"""The columns that are times."""

TIME = 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'
"""Their format for PostgreSQL's `to_char`."""


def head_of(opened: str, digests: Iterable[str]) -> str:
    """A question's head: the digest over all that was recorded of it so far."""
    return sha256("".join((opened, *digests)).encode()).hexdigest()


def heads_of(opened: str, digests: Iterable[str]) -> list[str]:
    """All heads that a question has had, the first one before its first step."""
    hashed = sha256(opened.encode())
    heads = [hashed.hexdigest()]
    for digest in digests:
        hashed.update(digest.encode())
        heads.append(hashed.hexdigest())
    return heads


# States in which steps, questions and runs end, as texts of the record.

ENDED_STEPS = ("finished", "failed", "cancelled")
"""Final states of steps."""

OPEN_STEPS = ("waiting", "ready", "running", "batched", "blocked")
"""States of steps that haven't ended."""

ENDED_QUESTIONS = ("finished", "failed", "cancelled")
"""Final statuses of questions."""

CLOSED_RUNS = ("active", "paused", "cancelled")
"""Desired states in which a run may be closed."""

PRUNED = "pruned"
"""Desired state of a run that is being removed for good."""

UNREADABLE = (
    *(msgspec.MsgspecError, KeyError, IndexError, TypeError, ValueError),
    *(AttributeError, OverflowError, RecursionError),
)
"""Exceptions that reading changed JSON may raise, anywhere between decoding and building a prompt."""

Row = dict[str, str | None]

FORMAT = "1.0"
"""Version of the record's format: of what its digests cover, and of bundles."""


class Record(Struct, frozen=True):
    """A row of a table: its columns by name, NULL as None."""

    table: str
    row: Row


_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_FRACTION = re.compile(r"-?([0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?|Infinity)|NaN")
_NAMES = {table: frozenset(columns) for table, columns in COLUMNS.items()}
_QUOTED = 200
_LEAST, _GREATEST = -(2**63), 2**63 - 1

_ROW = 1024
"""Approximate bytes of memory of an empty row."""

_DECODER = msgspec.json.Decoder(Record)


def write_record(record: Record) -> bytes:
    """Encode the record as a line of a bundle."""
    return msgspec.json.encode(record) + b"\n"


def read_record(line: bytes, number: int) -> Record:
    """Decode a line of a bundle; BundleError names the line, counted from 1.

    Only the exact bytes that an export writes are accepted: otherwise a changed file could still verify.
    """
    try:
        record = _DECODER.decode(line)
        if write_record(record) != line:
            raise ValueError("it isn't written as records are")
        check_record(record)
        if [*record.row] != [*COLUMNS[record.table]]:
            raise ValueError("its columns aren't those of the bundle's format, in their order")
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise BundleError(
            f"line {number} is no record of an audit trail ({str(error)[:_QUOTED]}): it was changed, or the file is no "
            "bundle that this version's `cotrail audit export` wrote"
        ) from error
    return record


def check_record(record: Record) -> None:
    """Raise KeyError or ValueError where a record lacks columns of its table or holds an impossible value."""
    row, columns = record.row, COLUMNS[record.table]
    if wrong := row.keys() ^ _NAMES[record.table]:
        [name, *_] = sorted(wrong)
        raise ValueError(f"the column {name} is {'unknown' if name in row else 'missing'}")
    for name in columns:
        if row[name] is None and name not in _NULLABLE.get(record.table, ()):
            raise ValueError(f"{name} is null")
    for name in _NUMBERS.get(record.table, ()):
        if not (_WHOLE.fullmatch(text(row, name)) and _LEAST <= number(row, name) <= _GREATEST):
            raise ValueError(f"{name} is no whole number that a column holds")
    for name in _FRACTIONS.get(record.table, ()):
        if not _FRACTION.fullmatch(text(row, name)):
            raise ValueError(f"{name} is no number")


def text(row: Row, name: str) -> str:
    """A column that must not be NULL; ValueError where it is."""
    value = row[name]
    if value is None:
        raise ValueError(f"{name} is null")
    return value


def number(row: Row, name: str) -> int:
    """A column that holds a whole number."""
    return int(text(row, name))


def size_of(row: Row) -> int:
    """Approximate bytes of memory of a row."""
    return _ROW + sum(map(sys.getsizeof, row.values()))


def end_of(records: int, sha256: str) -> Record:
    """The last line of a bundle: the number of lines before it, and the SHA-256 of their bytes."""
    return Record("end", {"records": str(records), "sha256": sha256})


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
