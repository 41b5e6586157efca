"""HotpotQA's files (`hotpot_*_v1*.json`): a list of questions, each with its paragraphs, and its records."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.common.json_files import decode, records
from cotrail.core.questions import Question, joined, named
from cotrail.data.corpora import hotpotqa_abstracts
from cotrail.data.datasets import flashrag, ircot_processed, spec
from cotrail.data.datasets.hub_rows import Context, Facts, published, row_paragraphs, supported
from cotrail.errors import CorpusError, DatasetError

# A question of HotpotQA as published, with its paragraphs; 2WikiMultihopQA's have the same form.


class HotpotQuestion(Struct, frozen=True):
    """A question as published; test files have neither answers nor supporting facts."""

    id: str = msgspec.field(name="_id")
    question: str
    context: Context
    answer: str | None = None
    supporting_facts: Facts = ()
    type: str = ""
    level: str = ""


class _Contexts(Struct, frozen=True):
    context: Context


def annotated(entry: HotpotQuestion, answers: tuple[str, ...]) -> spec.AnnotatedQuestion:
    """The entry as a question with these answers; paragraphs with supporting facts are gold, with these sentences."""
    gold, distractors = spec.parted(supported(entry.context, entry.supporting_facts))
    kinds = named(type=entry.type, level=entry.level)
    question = Question(id=entry.id, text=entry.question, answers=answers, gold=gold, kinds=kinds)
    return spec.AnnotatedQuestion(question=question, distractors=distractors)


def paragraphs(place: str, raw: bytes, _seed: int = 0) -> Iterator[tuple[str, str]]:
    """The titles and texts of a question's paragraphs."""
    context = decode(raw, _Contexts, place, CorpusError).context
    return ((title, joined(sentences)) for title, sentences in context)


def read(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file, be it the publishers' own or of such rows."""
    for place, raw in records(path, DatasetError):
        entry = decode(published(place, raw), HotpotQuestion, place, DatasetError)
        answers = () if entry.answer is None else (entry.answer,)
        yield spec.QuestionRecord(place=place, raw=raw, annotated=annotated(entry, answers))


def row_form(
    holds: str,
    reader: Callable[[Path, spec.ParagraphLookup | None], Iterator[spec.QuestionRecord]],
    **known_by: frozenset[str],
) -> spec.QuestionForm:
    """The form of such rows; known_by: the keys that they have (`has`), and that they lack (`lacks`)."""
    keys = frozenset({"question", "answer", "context", "supporting_facts"}) | known_by["has"]
    return spec.QuestionForm(
        format=spec.FileFormat(f"{holds} as Hugging Face has them", None, keys, known_by.get("lacks", frozenset())),
        read=reader,
        paragraphs=row_paragraphs,
        paragraphs_key="context",
    )


SPEC = spec.dataset(
    "hotpotqa",
    spec.QuestionForm(
        format=spec.FileFormat(
            "HotpotQA's questions",
            True,
            frozenset({"_id", "question", "context"}),
            frozenset({"evidences", "previous_question"}),
        ),
        read=read,
        paragraphs=row_paragraphs,
        paragraphs_key="context",
    ),
    row_form("HotpotQA's questions", read, has=frozenset({"level"}), lacks=frozenset({"evidences"})),
    ircot_processed.form("hotpotqa"),
    flashrag.form(type="type", level="level"),
    recipe=spec.Recipe(
        needs="the unpacked dump of Wikipedia's abstracts, a folder of wiki_*.bz2",
        seems="to be a bz2 archive",
        files=hotpotqa_abstracts.files,
        records=hotpotqa_abstracts.records,
        paragraphs=hotpotqa_abstracts.paragraphs,
        paper_paragraphs=5_233_329,
    ),
)
