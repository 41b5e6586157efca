"""MultiHop-RAG's files (Tang and Yang 2024): questions about news (`MultiHopRAG.json`), and articles (`corpus.json`).

Many questions name an article by its source or its date, so both stand in the title under which its text is indexed.
"""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from cotrail.common.json_files import decode, entries
from cotrail.core.questions import GoldParagraph, Question, named
from cotrail.data.corpora.documents import passages
from cotrail.data.datasets import spec
from cotrail.errors import CorpusError, DatasetError


class _Article(Struct, frozen=True):
    """What is said of an article, with its text in the corpus and by a question's evidence."""

    title: str
    source: str = ""
    published_at: str = ""

    @property
    def heading(self) -> str:
        """The title of its passages: with its source, and the day on which it was published."""
        day, _, _ = self.published_at.partition("T")
        details = ", ".join(filter(None, (self.source, day)))
        return f"{self.title} ({details})" if details else self.title


class Article(_Article, frozen=True, kw_only=True):
    """An article of the corpus."""

    body: str


class Evidence(_Article, frozen=True, kw_only=True):
    """An article that a question needs, and the fact in it."""

    fact: str


class MultihopRagQuestion(Struct, frozen=True):
    """A question as published; a null query has no evidence."""

    query: str
    answer: str
    question_type: str
    evidence_list: tuple[Evidence, ...]


def read(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file; gold: the facts, as snippets of the articles. An id is the question's SHA-256."""
    for place, raw in entries(path, DatasetError):
        entry = decode(raw, MultihopRagQuestion, place, DatasetError)
        gold = (GoldParagraph(title=each.heading, text=each.fact) for each in entry.evidence_list)
        question = Question(
            id=spec.id_of(entry.query),
            text=entry.query,
            answers=(entry.answer,) if entry.answer.strip() else (),
            gold=tuple(dict.fromkeys(gold)),
            kinds=named(type=entry.question_type),
        )
        yield spec.QuestionRecord(place=place, raw=bytes(raw), annotated=spec.AnnotatedQuestion(question=question))


def article_passages(place: str, raw: bytes) -> Iterator[tuple[str, str]]:
    """The titles and texts of an article's passages, cut as one's own documents are."""
    article = decode(raw, Article, place, CorpusError)
    return ((article.heading, passage.strip()) for passage in passages(article.body.split("\n\n")))


SPEC = spec.dataset("multihop-rag", spec.QuestionForm(format=spec.FORMATS["multihop_rag"], read=read, snippets=True))
