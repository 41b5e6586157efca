"""Records of the audit trail: rows of its tables, each column as PostgreSQL writes it.

A run's records come in one order, whether they are read from a store or from a bundle:

    bundle                                     of a bundle alone: the format, and which cotrail wrote it
    experiments, runs                          the experiment where the run is part of one
    demonstrations, paragraphs                 before the first question that refers to them
    questions                                  by position, each followed by its steps
        steps                                  by sequence, each followed by
            prompts                            of a bundle alone: the prompt as text
            attempts, paragraph_sets, sentences
    end                                        of a bundle alone: how many lines there are before it, and their SHA-256
"""

from typing import NoReturn

import msgspec
from msgspec import Struct

from cotrail.audit.digests import ATTEMPT, EXPERIMENT, QUESTION, RUN, STEP
from cotrail.errors import BundleError

Row = dict[str, str | None]


class Record(Struct, frozen=True):
    """A row of a table: its columns by name, NULL as None."""

    table: str
    row: Row


COLUMNS: dict[str, tuple[str, ...]] = {
    "bundle": ("format", "cotrail", "run"),
    "experiments": EXPERIMENT,
    "runs": (*RUN, "digest"),
    "demonstrations": ("digest", "body"),
    "paragraphs": ("digest", "title", "text"),
    "questions": (*QUESTION, "digest"),
    "steps": (*STEP, "digest"),
    "prompts": ("step_id", "text"),
    "attempts": ATTEMPT,
    "paragraph_sets": ("step_id", "rank", "question_id", "query", "digest", "paragraph_id", "score"),
    "sentences": ("step_id", "question_id", "position", "text"),
    "end": ("records", "sha256"),
}
"""What records have at least, by table; a store of a later version may have more."""

_NULLABLE: dict[str, tuple[str, ...]] = {
    "runs": ("experiment_id", "cell", "origin", "forked_at", "corpus", "digest"),
    "questions": ("pinned", *QUESTION[QUESTION.index("answer") :], "digest"),
    "steps": ("shared_in", "adopted_from", *STEP[STEP.index("sent_at") : STEP.index("previous")], "digest"),
    "attempts": ("ended_at", "outcome", "error"),
}
_NUMBERS: dict[str, tuple[str, ...]] = {
    "runs": ("size", "seed"),
    "questions": ("position",),
    "steps": ("sequence", "epoch"),
    "attempts": ("epoch",),
    "paragraph_sets": ("rank",),
    "sentences": ("position",),
    "end": ("records",),
}
_FRACTIONS = {"runs": ("temperature",), "paragraph_sets": ("score",)}

_DECODER = msgspec.json.Decoder(Record)


def write_record(record: Record) -> bytes:
    """The record as a line of a bundle."""
    return msgspec.json.encode(record) + b"\n"


def read_record(line: bytes, number: int) -> Record:
    """The record that a line of a bundle holds; BundleError names the line, which counts from 1."""
    try:
        record = _DECODER.decode(line)
        return _checked(record)
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError) as error:
        _refuse(number, str(error))


def text(row: Row, name: str) -> str:
    """A column that is never NULL."""
    value = row[name]
    if value is None:
        raise ValueError(f"{name} is null")
    return value


def number(row: Row, name: str) -> int:
    """A column that holds a whole number."""
    return int(text(row, name))


def _checked(record: Record) -> Record:
    for name in COLUMNS[record.table]:
        if record.row[name] is None and name not in _NULLABLE.get(record.table, ()):
            raise ValueError(f"{name} is null")
    for name in _NUMBERS.get(record.table, ()):
        int(text(record.row, name))
    for name in _FRACTIONS.get(record.table, ()):
        float(text(record.row, name))
    return record


def _refuse(line: int, problem: str) -> NoReturn:
    raise BundleError(
        f"line {line} is no record of an audit trail ({problem}): it was changed, or the file is no bundle "
        "that `cotrail audit export` wrote"
    )
