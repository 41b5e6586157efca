"""TriviaQA's unfiltered files (`unfiltered-web-dev.json`, Joshi et al. 2017): one object with a list of questions."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.common.json_files import decode
from cotrail.common.text_files import opened, read_whole
from cotrail.core.questions import Question
from cotrail.data.datasets import flashrag, spec
from cotrail.errors import DatasetError


class _File(Struct, frozen=True, rename="pascal"):
    data: tuple[msgspec.Raw, ...]


class _Answer(Struct, frozen=True, rename="pascal"):
    """An answer, the names of the page of Wikipedia that has it as its title, and both normalized."""

    value: str
    aliases: tuple[str, ...] = ()
    normalized_aliases: tuple[str, ...] = ()


class TriviaQuestion(Struct, frozen=True, rename="pascal"):
    """A question as published; test files have no answers."""

    question_id: str
    question: str
    answer: _Answer | None = None


def read(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file, which is held in memory."""
    with opened(path, DatasetError) as file:
        content = read_whole(file, str(path), DatasetError)
    for number, raw in enumerate(decode(content, _File, str(path), DatasetError).data, start=1):
        place = f"{path}, question {number}"
        entry = decode(raw, TriviaQuestion, place, DatasetError)
        question = Question(id=entry.question_id, text=entry.question.strip(), answers=_answers(entry.answer))
        yield spec.QuestionRecord(place=place, raw=bytes(raw), annotated=spec.AnnotatedQuestion(question=question))


def _answers(answer: _Answer | None) -> tuple[str, ...]:
    """The answer and its other names. The official script compares with the normalized ones alone."""
    if answer is None:
        return ()
    return spec.accepted_answers((answer.value, *answer.aliases, *answer.normalized_aliases))


def wrapped(_path: Path, questions: Sequence[bytes]) -> bytes:
    """A file of these questions."""
    return b'{"Data": [' + b",\n".join(questions) + b"]}\n"


SPEC = spec.dataset(
    "triviaqa",
    spec.QuestionForm(
        format=spec.FileFormat("TriviaQA's questions", False, frozenset({"Data"})),
        read=read,
        written=wrapped,
        suffix=".json",
    ),
    flashrag.form(),
)
