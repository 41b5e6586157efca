"""Files that the authors of IRCoT processed (`dev_subsampled.jsonl` and the like): one format for four datasets.

Described by StonyBrookNLP/ircot, `processing_scripts` and `commaqa/inference/dataset_readers.py`.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from msgspec import Struct

from cotrail.common.json_files import decode, records
from cotrail.core.questions import Question, named
from cotrail.data.datasets import spec
from cotrail.errors import CorpusError, DatasetError

FORMAT = spec.FORMATS["ircot"]
"""One format for four datasets; a file doesn't say of which it is."""

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
        if self.number or self.spans:
            return self.number or spec.spans_as_answer(self.spans)
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
    contexts: tuple[spec.ContextParagraph, ...]
    answers_objects: tuple[_DropAnswer, ...] = ()
    pinned_contexts: tuple[spec.ContextParagraph, ...] = ()
    reasoning_steps: tuple[_Reasoning | str, ...] = ()
    type: str | None = None
    level: str | None = None
    dataset: str | None = None


class _Contexts(Struct, frozen=True):
    contexts: tuple[spec.ContextParagraph, ...]


def form(dataset: str, *, pins: bool = False) -> spec.QuestionForm:
    """The form for that dataset; pins: whether its questions pin a passage."""
    return spec.QuestionForm(
        format=FORMAT, read=partial(_read, dataset, pins=pins), paragraphs=_paragraphs, paragraphs_key="contexts"
    )


def _read(
    dataset: str, path: Path, _lookup: spec.ParagraphLookup | None, *, pins: bool
) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file, which must be the dataset's.

    2WikiMultihopQA's and MuSiQue's lack some of their answers and their kinds, see `official_answers`.
    """
    for place, raw in records(path, DatasetError):
        line = decode(raw, ProcessedQuestion, place, DatasetError)
        _check(line, dataset, place, pins=pins)
        yield spec.QuestionRecord(place=place, raw=raw, annotated=_annotated(line))


def _check(line: ProcessedQuestion, dataset: str, place: str, *, pins: bool) -> None:
    if len(line.pinned_contexts) > 1:
        raise DatasetError(f"{place}: there is more than one pinned passage; leave the one that the question is on")
    if line.dataset not in (None, dataset):
        raise DatasetError(f"{place}: this question says that it is of {line.dataset!r}, and not of {dataset!r}")
    if pins != bool(line.pinned_contexts):
        fault = "pins a passage, as those of IIRC do" if line.pinned_contexts else "pins no passage"
        raise DatasetError(f"{place}: this question {fault}, so it isn't of {dataset!r}; name its dataset")


def _annotated(line: ProcessedQuestion) -> spec.AnnotatedQuestion:
    pinned = line.pinned_contexts[0].flagged()[0] if line.pinned_contexts else None
    gold, distractors = spec.parted(
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
    return spec.AnnotatedQuestion(question=question, distractors=distractors, chain=chain)


def _paragraphs(place: str, raw: bytes) -> Iterator[tuple[str, str]]:
    contexts = decode(raw, _Contexts, place, CorpusError).contexts
    return ((paragraph.title, paragraph.paragraph_text) for paragraph in contexts)
