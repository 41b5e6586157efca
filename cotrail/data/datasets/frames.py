"""FRAMES' table (`test.tsv`, Krishna et al. 2024): 824 questions, each with the pages of Wikipedia that it needs."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.core.question_kinds import named
from cotrail.core.questions import GoldParagraph, Question
from cotrail.data.datasets.annotated import AnnotatedQuestion, ParagraphLookup, QuestionRecord, accepted_answers, id_of
from cotrail.data.datasets.scoring import Scoring
from cotrail.data.datasets.spec import DatasetSpec, FileFormat, QuestionForm
from cotrail.data.datasets.tables import records, written
from cotrail.data.datasets.wikipedia_links import titles_of
from cotrail.errors import DatasetError


class FramesQuestion(Struct, frozen=True):
    """A question as published; some copies as JSON have it as `Question`.

    links: a list as Python writes it, in copies as JSON a list too.
    """

    answer: str = msgspec.field(name="Answer")
    links: str | tuple[str, ...] = msgspec.field(name="wiki_links")
    reasoning: str = msgspec.field(name="reasoning_types")
    prompt: str | None = msgspec.field(name="Prompt", default=None)
    question: str | None = msgspec.field(name="Question", default=None)


def read(path: Path, _lookup: ParagraphLookup | None) -> Iterator[QuestionRecord]:
    """Read the questions of a file; gold: the pages linked, any passage of them. An id is the question's SHA-256."""
    for place, raw, row in records(path, FramesQuestion):
        text = row.prompt if row.prompt is not None else row.question
        if text is None:
            raise DatasetError(f"{place}: there is no Prompt; add it or take the record out")
        titles = titles_of(row.links if isinstance(row.links, str) else " ".join(row.links))
        question = Question(
            id=id_of(text.strip()),
            text=text.strip(),
            answers=accepted_answers((row.answer,)),
            gold=tuple(GoldParagraph(title=title, text="", by="title") for title in titles),
            kinds=named(reasoning=row.reasoning.strip(), pages=str(len(titles)) if titles else ""),
        )
        yield QuestionRecord(place=place, raw=raw, annotated=AnnotatedQuestion(question=question))


_KEYS = frozenset({"Answer", "wiki_links", "reasoning_types"})

SPEC = DatasetSpec(
    name="frames",
    title="FRAMES",
    files="test.tsv, or its rows as CSV or JSON",
    source="https://huggingface.co/datasets/google/frames-benchmark",
    asks="questions about several pages of Wikipedia",
    metric="exact match and F1, as SQuAD's script",
    kinds="reasoning: its types, joined by |; pages: how many are linked",
    forms=(
        QuestionForm(format=FileFormat("FRAMES' questions", False, _KEYS), read=read, written=written),
        QuestionForm(format=FileFormat("FRAMES' questions", True, _KEYS), read=read),
    ),
    scoring=Scoring("squad"),
)
