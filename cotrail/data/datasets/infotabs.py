"""INFOTABS' files (`maindata/infotabs_*.tsv`): hypotheses about tables, which are in `tables/json` (Gupta et al. 2020).

As in Rethinking with Retrieval (section 4.4, table 8), only entailed and contradictory hypotheses are read, each as a
question, `... True or False?`, that pins its table rendered as sentences.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from cotrail.common.json_files import decode, is_object, lines
from cotrail.common.json_files import records as read_records
from cotrail.common.refusals import refusal
from cotrail.common.tables import TABLES, form_of
from cotrail.common.text_files import MAX_RECORD_BYTES, opened, read_whole, rows
from cotrail.core.questions import GoldParagraph, Question, named
from cotrail.core.table_sentences import table_sentences
from cotrail.data.datasets import spec
from cotrail.errors import DatasetError

# Questions that are published as a table (tab- or comma-separated), and go around as JSON with the same names too.

T = TypeVar("T")


def records(path: Path, kind: type[T]) -> Iterator[tuple[str, bytes, T]]:
    """Yield the rows of a table, or the elements or lines of JSON, with their places and their bytes.

    A cell of a table is a string; columns that the type hasn't are read past.
    """
    if form_of(path, DatasetError) not in TABLES:
        for place, raw in read_records(path, DatasetError):
            yield place, raw, decode(raw, kind, place, DatasetError)
    else:
        for place, line, cells in rows(path, (), DatasetError):
            try:
                yield place, line, msgspec.convert(cells, kind)
            except msgspec.ValidationError as cause:
                raise DatasetError(
                    f"{place}: {refusal(cause, kind, cells)}; correct the line, or the names of the columns"
                ) from cause


def written(path: Path, raws: Sequence[bytes]) -> bytes:
    """A file of these records, below the header of that file where it is a table."""
    header = [] if is_object(path, DatasetError) else [next(line.strip() for _, line in lines(path, DatasetError))]
    return b"".join(line + b"\n" for line in (*header, *raws))


def table_forms(format_: str, read: spec.ReadQuestions) -> tuple[spec.QuestionForm, spec.QuestionForm]:
    """The forms of questions in that format: as a table or lines of JSON, and as one JSON list."""
    table = spec.QuestionForm(format=spec.FORMATS[format_], read=read, written=written)
    return table, spec.QuestionForm(format=replace(table.format, is_list=True), read=read)


COLUMNS = (("table_id",), ("hypothesis",), ("label",))
"""Required columns; the official files have `annotater_id` too."""

CATEGORIES = "table_categories.tsv"
"""The file in the folder `tables` with the category of each table."""

ANSWERS = {"E": "true", "C": "false"}
NEUTRAL = "N"

TITLE = "title"
"""The key of a table's title, which is stored among the keys of its rows."""

_CLOSING = "\"')]\u201d\u2019"
"""Closing quotation marks and brackets that may follow the full stop of a sentence."""


def read(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the non-neutral hypotheses of a file, equal lines once. Kinds: the label, and the table's category if known.

    The folder `tables` is expected next to the file or next to the file's folder. Ids are made from the table's id and
    the line's content, so that they don't depend on the line's position.
    """
    folder = _tables(path)
    categories = _categories(folder / CATEGORIES)
    passages: dict[str, GoldParagraph] = {}
    seen = set()
    for place, raw, cells in rows(path, COLUMNS, DatasetError):
        table_id, hypothesis, label = (cells[name] for (name,) in COLUMNS)
        id_ = f"{table_id}-{hashlib.sha256(raw.strip()).hexdigest()}"
        if label == NEUTRAL or id_ in seen:
            continue
        seen.add(id_)
        if table_id not in passages:
            passages[table_id] = _passage(folder / "json" / f"{table_id}.json", place)
        question = Question(
            id=id_,
            text=as_question(hypothesis),
            answers=(_answer(label, place),),
            pinned=passages[table_id],
            kinds=named(category=categories.get(table_id, ""), label=label),
        )
        yield spec.QuestionRecord(place=place, raw=raw, annotated=spec.AnnotatedQuestion(question=question))


def as_question(hypothesis: str) -> str:
    """Turn a hypothesis into a question: add a full stop if it lacks one, then "True or False?"."""
    stripped = hypothesis.strip()
    if not stripped:
        return ""
    end = "" if stripped.rstrip(_CLOSING).endswith((".", "!", "?")) else "."
    return f"{stripped}{end} True or False?"


def _answer(label: str, place: str) -> str:
    if label not in ANSWERS:
        raise DatasetError(f"{place}: the label is {label!r}; correct it to E, N or C, or take the line out")
    return ANSWERS[label]


def _tables(path: Path) -> Path:
    folder = path.parent / "tables"
    return folder if folder.is_dir() else path.parent.parent / "tables"


def _passage(path: Path, place: str) -> GoldParagraph:
    if not path.is_file():
        raise DatasetError(f"{place}: its table {path} isn't there; keep the folders as they are published")
    with opened(path, DatasetError) as file:
        raw = read_whole(file, str(path), DatasetError, MAX_RECORD_BYTES)
    table = decode(raw, dict[str, tuple[str, ...]], str(path), DatasetError)
    title = " ".join(" ".join(table.pop(TITLE, ())).split())
    return GoldParagraph(title=title, text=" ".join(table_sentences(title, table)))


def _categories(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    entries = rows(path, (("table_id",), ("category",)), DatasetError)
    return {cells["table_id"]: cells["category"] for _, _, cells in entries}


SPEC = spec.dataset(
    "infotabs", spec.QuestionForm(format=spec.FORMATS["infotabs"], read=read, written=written, suffix=".tsv")
)
