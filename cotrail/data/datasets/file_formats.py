"""Format detection: what a file seems to hold, from the keys of its first record; for errors that say so."""

from collections.abc import Collection
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import ijson
from msgspec import Struct

from cotrail.common.json_streaming import OversizeError, events
from cotrail.common.text_files import opened
from cotrail.errors import InputError

FIRST_KEYS = 40
"""Maximum keys of the first record that are examined."""

FIRST_EVENTS = 100_000
"""Maximum JSON events that are read for them."""


class FileFormat(Struct, frozen=True):
    """A file format; holds: its content, for messages.

    has, lacks: keys that its first record has, and that it hasn't. inside: keys of that record's first value.
    datasets: the datasets whose questions have this format, if it holds questions.
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
"""A single object that maps ids to paragraphs."""

PROCESSED = FileFormat(
    "questions that the authors of IRCoT processed",
    False,
    frozenset({"question_id", "contexts"}),
    ("hotpotqa", "2wikimultihopqa", "musique", "iirc"),
)
"""One format for four datasets; a file doesn't say of which it is."""

KILT = FileFormat(
    "KILT's records", False, frozenset({"id", "input"}), ("zsre", "trex", "fever", "eli5"), frozenset({"question"})
)
"""One format for four datasets; a file doesn't say of which it is."""

BIG_BENCH = FileFormat("StrategyQA's questions as a task of BIG-bench", False, frozenset({"examples"}), ("strategyqa",))
"""A single object with a list of examples."""

FORMATS = (
    FileFormat("2WikiMultihopQA's questions", True, frozenset({"_id", "context", "evidences"}), ("2wikimultihopqa",)),
    FileFormat(
        "HotpotQA's questions", True, frozenset({"_id", "context", "level"}), ("hotpotqa",), frozenset({"evidences"})
    ),
    FileFormat("IIRC's questions", True, frozenset({"questions", "text", "title"}), ("iirc",)),
    FileFormat("MuSiQue's questions", False, frozenset({"id", "question", "paragraphs"}), ("musique",)),
    FileFormat("StrategyQA's questions", True, frozenset({"qid", "question"}), ("strategyqa", "strategyqa-facts")),
    FileFormat(
        "TempQuestions' questions", True, frozenset({"Id", "Question", "Gold answer", "Type"}), ("tempquestions",)
    ),
    FileFormat("INFOTABS' hypotheses", False, frozenset({"table_id", "hypothesis", "label"}), ("infotabs",)),
    FileFormat("FEVER's claims", False, frozenset({"id", "claim"}), ("fever",)),
    STRATEGYQA_PARAGRAPHS,
    PROCESSED,
    KILT,
    BIG_BENCH,
    FileFormat("2WikiMultihopQA's aliases", False, frozenset({"Q_id", "aliases"})),
    FileFormat("paragraphs of HotpotQA's abstracts", False, frozenset({"url", "title", "text"})),
    FileFormat("paragraphs of a corpus", False, frozenset({"id", "title", "text"}), (), frozenset({"question"})),
    FileFormat(
        "questions in cotrail's own form", False, frozenset({"id", "question"}), ("jsonl",), frozenset({"paragraphs"})
    ),
)

ARTICLES = FileFormat("IIRC's articles", False, frozenset())
"""A single object that maps titles to pages: it has more keys than any other file's first record."""

_BEGINNINGS = {
    b"BZh": "a bz2 archive",
    b"PK\x03\x04": "a zip archive (as .xlsx and .docx are, too)",
    b"\x1f\x8b": "a gzip archive",
    b"\xfd7zXZ": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"PAR1": "a Parquet file",
    b"%PDF": "a PDF",
    b"SQLite format 3": "an SQLite database",
    b"GGUF": "a GGUF model",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"\x7fELF": "a program",
    b"<": "a web page",
}


def detect_format(path: Path, error: type[InputError]) -> FileFormat | None:
    """The format of the file; None where it isn't a known one."""
    with opened(path, error) as file:
        begin = file.tell()
        is_list, keys, inside = _first_record(file)
        file.seek(begin)
        keys = keys or _columns(file)
    by_default = ARTICLES if len(keys) == FIRST_KEYS and not is_list else None
    return next((form for form in FORMATS if _fits(form, is_list, keys, inside)), by_default)


def apparent_content(path: Path, error: type[InputError]) -> str | None:
    """What a file seems, e.g. `to hold MuSiQue's questions` or `to be a web page`; None where it isn't recognised."""
    if form := detect_format(path, error):
        return f"to hold {form.holds}"
    with opened(path, error) as file:
        start = file.read(512)
    if found := next((what for mark, what in _BEGINNINGS.items() if start.lstrip().startswith(mark)), None):
        return f"to be {found}"
    return "to be binary data" if b"\0" in start else None


def _fits(form: FileFormat, is_list: bool, keys: Collection[str], inside: Collection[str]) -> bool:  # noqa: FBT001
    has = form.has <= set(keys) and form.inside <= set(inside)
    return form.is_list == is_list and has and form.lacks.isdisjoint(keys)


def _first_record(file: BinaryIO) -> tuple[bool, list[str], list[str]]:
    """Return whether the file is a list, the keys of its first record, and the keys of that record's first value."""
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
    """The column names of a tab-separated file; none where the first line has no tab."""
    names = file.readline(10_000).decode(errors="replace").split("\t")
    return [name.strip() for name in names] if len(names) > 1 else []
