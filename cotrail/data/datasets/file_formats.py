"""What a file seems to be, going by how it begins: for errors that say so."""

from collections.abc import Collection
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import ijson
from msgspec import Struct

from cotrail.common.json_files import opened
from cotrail.common.json_streaming import OversizeError, events
from cotrail.errors import InputError

FIRST_KEYS = 40
"""How many of the first record's keys are looked at."""

FIRST_EVENTS = 100_000
"""How many brackets, keys and values are looked at for them."""


class FileFormat(Struct, frozen=True):
    """A kind of file: `holds` says what is in it; its first record has these keys, none of `lacks`.

    datasets: whose questions this form is of, if they are questions.
    inside: keys of the record's first value, where that is an object.
    """

    holds: str
    is_list: bool
    has: frozenset[str]
    datasets: tuple[str, ...] = ()
    lacks: frozenset[str] = frozenset()
    inside: frozenset[str] = frozenset()


STRATEGYQA_PARAGRAPHS = FileFormat(
    "StrategyQA's paragraphs", False, frozenset(), inside=frozenset({"title", "para_index", "content"})
)
"""One object with a paragraph for each id."""

PROCESSED = FileFormat(
    "questions that the authors of IRCoT processed",
    False,
    frozenset({"question_id", "contexts"}),
    ("hotpotqa", "2wikimultihopqa", "musique", "iirc"),
)
"""One form for four datasets, which it doesn't name."""

FORMATS = (
    FileFormat("2WikiMultihopQA's questions", True, frozenset({"_id", "context", "evidences"}), ("2wikimultihopqa",)),
    FileFormat(
        "HotpotQA's questions", True, frozenset({"_id", "context", "level"}), ("hotpotqa",), frozenset({"evidences"})
    ),
    FileFormat("IIRC's questions", True, frozenset({"questions", "text", "title"}), ("iirc",)),
    FileFormat("MuSiQue's questions", False, frozenset({"id", "question", "paragraphs"}), ("musique",)),
    FileFormat("StrategyQA's questions", True, frozenset({"qid", "question"}), ("strategyqa",)),
    FileFormat(
        "TempQuestions' questions", True, frozenset({"Id", "Question", "Gold answer", "Type"}), ("tempquestions",)
    ),
    FileFormat("INFOTABS' hypotheses", False, frozenset({"table_id", "hypothesis", "label"}), ("infotabs",)),
    STRATEGYQA_PARAGRAPHS,
    PROCESSED,
    FileFormat("2WikiMultihopQA's aliases", False, frozenset({"Q_id", "aliases"})),
    FileFormat("paragraphs of HotpotQA's abstracts", False, frozenset({"url", "title", "text"})),
    FileFormat("paragraphs of a corpus", False, frozenset({"id", "title", "text"}), (), frozenset({"question"})),
    FileFormat(
        "questions in cotrail's own form", False, frozenset({"id", "question"}), ("jsonl",), frozenset({"paragraphs"})
    ),
)

ARTICLES = FileFormat("IIRC's articles", False, frozenset())
"""One object with a page's title for each key, and thus with more keys than any other file's first record."""

_BEGINNINGS = {
    b"BZh": "a bz2 archive",
    b"PK": "a zip archive",
    b"\x1f\x8b": "a gzip archive",
    b"<": "a web page",
}


def detect_format(path: Path, error: type[InputError]) -> FileFormat | None:
    """The form of the file, where it is one of those known."""
    with opened(path, error) as file:
        is_list, keys, inside = _first_record(file)
        keys = keys or _columns(file)
    by_default = ARTICLES if len(keys) == FIRST_KEYS and not is_list else None
    return next((form for form in FORMATS if _fits(form, is_list, keys, inside)), by_default)


def apparent_content(path: Path, error: type[InputError]) -> str | None:
    """What the file seems to do, e.g. `to hold MuSiQue's questions` or `to be a web page`; None where nobody knows."""
    if form := detect_format(path, error):
        return f"to hold {form.holds}"
    with opened(path, error) as file:
        start = file.read(64).lstrip()
    return next((f"to be {what}" for mark, what in _BEGINNINGS.items() if start.startswith(mark)), None)


def _fits(form: FileFormat, is_list: bool, keys: Collection[str], inside: Collection[str]) -> bool:  # noqa: FBT001
    has = form.has <= set(keys) and form.inside <= set(inside)
    return form.is_list == is_list and has and form.lacks.isdisjoint(keys)


def _first_record(file: BinaryIO) -> tuple[bool, list[str], list[str]]:
    """Whether the file is a list, the keys of its first record, and those of that record's first value."""
    keys: list[str] = []
    inside: list[str] = []
    is_list = False
    with suppress(OversizeError, ijson.JSONError, UnicodeDecodeError):
        for depth, (event, value) in islice(events(file, multiple_values=True), FIRST_EVENTS):
            is_list = is_list or (depth, event) == (0, "start_array")
            record = 1 if is_list else 0
            if event == "map_key" and depth == record + 1:
                keys.append(value)
            elif event == "map_key" and depth == 2 and len(keys) == 1:
                inside.append(value)
            if (event == "end_map" and depth == record) or len(keys) == FIRST_KEYS:
                break
    return is_list, keys, inside


def _columns(file: BinaryIO) -> list[str]:
    """The columns that the first line names, where it names several with tabs between them."""
    file.seek(0)
    names = file.readline(10_000).decode(errors="replace").split("\t")
    return [name.strip() for name in names] if len(names) > 1 else []
