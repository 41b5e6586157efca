"""StrategyQA as a task of BIG-bench (`bigbench/benchmark_tasks/strategyqa/task.json`): one JSON object with examples.

Search-in-the-Chain is evaluated on it (section 4.1). It has the questions and their answers, and neither ids nor
evidence.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.common.input_limits import MAX_RECORD_BYTES, read_whole
from cotrail.common.json_files import decode
from cotrail.common.text_files import opened
from cotrail.core.questions import Question
from cotrail.data.datasets.annotated import YES_OR_NO, AnnotatedQuestion, ParagraphLookup, QuestionRecord, id_of
from cotrail.data.datasets.spec import FileFormat, QuestionForm
from cotrail.errors import DatasetError


class _Task(Struct, frozen=True):
    examples: tuple[msgspec.Raw, ...]


class _Scores(Struct, frozen=True):
    """1 for the right answer, 0 for the other."""

    yes: float = msgspec.field(name="Yes")
    no: float = msgspec.field(name="No")


class _Example(Struct, frozen=True):
    input: str
    target_scores: _Scores


def read(path: Path, _lookup: ParagraphLookup | None) -> Iterator[QuestionRecord]:
    """Read the examples of the file, equal ones once; an id is the SHA-256 of the question."""
    with opened(path, DatasetError) as file:
        content = read_whole(file, str(path), DatasetError, MAX_RECORD_BYTES)
    seen = set()
    for number, raw in enumerate(decode(content, _Task, str(path), DatasetError).examples, start=1):
        place = f"{path}, example {number}"
        example = decode(raw, _Example, place, DatasetError)
        if example not in seen:
            seen.add(example)
            yield QuestionRecord(place=place, raw=bytes(raw), annotated=AnnotatedQuestion(question=_question(example)))


def wrapped(_path: Path, examples: Sequence[bytes]) -> bytes:
    """A file of these examples."""
    return b'{"examples": [' + b",\n".join(examples) + b"]}\n"


def _question(example: _Example) -> Question:
    text = example.input.strip()
    right = example.target_scores.yes > example.target_scores.no
    return Question(id=id_of(text), text=text, answers=(YES_OR_NO[right],))


FORM = QuestionForm(
    format=FileFormat("StrategyQA's questions as a task of BIG-bench", False, frozenset({"examples"})),
    read=read,
    written=wrapped,
    suffix=".json",
)
"""A single object with a list of examples."""
