"""MuSiQue's files (`musique_*_v1.0_*.jsonl`): a question a line, with its twenty paragraphs."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from cotrail.common.json_files import decode, records
from cotrail.core.questions import Question, named
from cotrail.data.corpora import hotpotqa_abstracts
from cotrail.data.datasets import hub_rows, ircot_processed, spec
from cotrail.data.datasets.hub_rows import published, row_paragraphs
from cotrail.errors import CorpusError, DatasetError

_HOPS = re.compile(r"(\d)hop")


class MusiqueQuestion(Struct, frozen=True):
    """A question as published; test files have no answers."""

    id: str
    question: str
    paragraphs: tuple[spec.ContextParagraph, ...]
    answer: str | None = None
    answer_aliases: tuple[str, ...] = ()
    answerable: bool = True


class _Contexts(Struct, frozen=True):
    paragraphs: tuple[spec.ContextParagraph, ...]


def read(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the answerable questions of a file."""
    for place, raw in records(path, DatasetError):
        line = decode(published(place, raw), MusiqueQuestion, place, DatasetError)
        if line.answerable:
            yield spec.QuestionRecord(place=place, raw=raw, annotated=_annotated(line))


def _annotated(line: MusiqueQuestion) -> spec.AnnotatedQuestion:
    gold, distractors = spec.parted(paragraph.flagged() for paragraph in line.paragraphs)
    hops, mark, _ = line.id.partition("__")
    question = Question(
        id=line.id,
        text=line.question,
        answers=() if line.answer is None else tuple(dict.fromkeys((line.answer, *line.answer_aliases))),
        gold=gold,
        kinds=named(hops=hops if mark else ""),
    )
    return spec.AnnotatedQuestion(question=question, distractors=distractors)


def hops(kinds: Mapping[str, str]) -> int | None:
    """The number of hops of questions of these kinds, 3 of `3hop2`; None for kinds that aren't MuSiQue's.

    Table 5 of Search-in-the-Chain counts reasoning steps by it.
    """
    matches = filter(None, map(_HOPS.match, kinds.values()))
    return next((int(match[1]) for match in matches), None)


def paragraphs(place: str, raw: bytes, _seed: int = 0) -> Iterator[tuple[str, str]]:
    """The titles and texts of a question's paragraphs, be it answerable or not."""
    contexts = decode(raw, _Contexts, place, CorpusError).paragraphs
    return ((paragraph.title, paragraph.paragraph_text) for paragraph in contexts)


SPEC = spec.dataset(
    "musique",
    spec.QuestionForm(
        format=spec.FORMATS["musique"], read=read, paragraphs=row_paragraphs, paragraphs_key="paragraphs"
    ),
    ircot_processed.form("musique"),
    hub_rows.form(),
    recipe=spec.Recipe(
        needs="MuSiQue's six files musique_*_v1.0_*.jsonl",
        seems="to hold MuSiQue's questions",
        records=hotpotqa_abstracts.lines,
        paragraphs=paragraphs,
        paper_paragraphs=139_416,
    ),
)
