"""Files that the authors of IRCoT processed (`dev_subsampled.jsonl` and the like): one format for four datasets.

Described by StonyBrookNLP/ircot, `processing_scripts` and `commaqa/inference/dataset_readers.py`.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from cotrail.common.json_files import decode, lines
from cotrail.core.question_kinds import named
from cotrail.core.questions import Question
from cotrail.data.datasets.annotated import AnnotatedQuestion, QuestionRecord, parted
from cotrail.data.datasets.iirc import answer_of
from cotrail.data.datasets.musique import ContextParagraph
from cotrail.errors import DatasetError

PROCESSED_FORMAT = "ircot"
"""The name of the format where a run doesn't say of which dataset its questions are."""


class _Date(Struct, frozen=True):
    day: str = ""
    month: str = ""
    year: str = ""


class _DropAnswer(Struct, frozen=True):
    """An answer in DROP's format: a number, one or several spans, or a date."""

    number: str = ""
    spans: tuple[str, ...] = ()
    date: _Date = _Date()

    def text(self) -> str:
        """The answer as questions hold it; empty if there is none."""
        if self.number or self.spans:
            return self.number or answer_of(self.spans)
        parts = (self.date.day, self.date.month, self.date.year)
        return "-".join(parts) if any(parts) else ""


class _Reasoning(Struct, frozen=True):
    """A step of the chain that an annotator wrote for a demonstration."""

    cot_sent: str


class ProcessedQuestion(Struct, frozen=True):
    """A question as processed; only files of demonstrations have sentences in `reasoning_steps`.

    dataset: given in HotpotQA's files only.
    """

    question_id: str
    question_text: str
    contexts: tuple[ContextParagraph, ...]
    answers_objects: tuple[_DropAnswer, ...] = ()
    pinned_contexts: tuple[ContextParagraph, ...] = ()
    reasoning_steps: tuple[_Reasoning | str, ...] = ()
    type: str | None = None
    level: str | None = None
    dataset: str | None = None


def read(dataset: str, path: Path) -> Iterator[QuestionRecord]:
    """Read the questions of a file, which must be the dataset's.

    2WikiMultihopQA's and MuSiQue's lack some of their answers and their kinds, see `official_answers`.
    """
    for place, raw in lines(path, DatasetError):
        line = decode(raw, ProcessedQuestion, place, DatasetError)
        _check(line, dataset, place)
        yield QuestionRecord(place=place, raw=raw, annotated=_annotated(line))


def _check(line: ProcessedQuestion, dataset: str, place: str) -> None:
    if len(line.pinned_contexts) > 1:
        raise DatasetError(f"{place}: there is more than one pinned passage; leave the one that the question is on")
    if line.dataset not in (None, dataset):
        raise DatasetError(f"{place}: this question says that it is of {line.dataset!r}, and not of {dataset!r}")
    if (dataset == "iirc") != bool(line.pinned_contexts):
        pins = "pins a passage, as those of IIRC do" if line.pinned_contexts else "pins no passage"
        raise DatasetError(f"{place}: this question {pins}, so it isn't of {dataset!r}; name its dataset")


def _annotated(line: ProcessedQuestion) -> AnnotatedQuestion:
    pinned = line.pinned_contexts[0].flagged()[0] if line.pinned_contexts else None
    gold, distractors = parted(
        paragraph.flagged() for paragraph in line.contexts if pinned is None or paragraph.title != pinned.title
    )
    answers = Counter(text for answer in line.answers_objects if (text := answer.text()))
    question = Question(
        id=line.question_id,
        text=line.question_text,
        answers=tuple(text for text, _ in answers.most_common()),
        gold=gold,
        pinned=pinned,
        kinds=named(type=line.type or "", level=line.level or ""),
    )
    chain = tuple(step.cot_sent for step in line.reasoning_steps if isinstance(step, _Reasoning))
    return AnnotatedQuestion(question=question, distractors=distractors, chain=chain)
