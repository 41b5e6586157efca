"""Records of questions with their paragraphs, as their publishers have them and as rows of Hugging Face's.

HotpotQA's, 2WikiMultihopQA's, MuSiQue's and SQuAD's. In rows of Hugging Face's, lists of pairs are columns, such as
`{"title": [...], "sentences": [...]}`, or JSON in a text. FlashRAG has one form for all datasets
(RUC-NLPIR/FlashRAG_datasets), on whose files Search-R1, R1-Searcher, ReSearch and others are evaluated.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.json_files import decode, records
from cotrail.core.questions import GoldParagraph, Question, joined, named
from cotrail.data.datasets import spec
from cotrail.data.datasets.spec import ContextParagraph
from cotrail.errors import CorpusError, DatasetError, InputError

FORMAT = spec.FORMATS["flashrag"]
"""One format for all its datasets; a file doesn't say of which it is."""


class _SupportingFacts(Struct, frozen=True):
    """The pages that support the answer, one for each sentence."""

    title: tuple[str, ...] = ()


class _Metadata(Struct, frozen=True):
    supporting_facts: _SupportingFacts = _SupportingFacts()


class FlashragQuestion(Struct, frozen=True):
    """A question as published; metadata: what else its dataset says of it."""

    id: str | int
    question: str
    golden_answers: tuple[str, ...]
    metadata: Mapping[str, Any] | None = None


def form(**kinds: str) -> spec.QuestionForm:
    """The form for a dataset whose questions are of kinds of these names, each under that key of the metadata."""

    def read(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
        for place, raw in records(path, DatasetError):
            line = decode(raw, FlashragQuestion, place, DatasetError)
            question = Question(
                id=str(line.id),
                text=line.question.strip(),
                answers=spec.accepted_answers(line.golden_answers),
                gold=_pages(line),
                kinds=named(**{name: str((line.metadata or {}).get(key) or "") for name, key in kinds.items()}),
            )
            yield spec.QuestionRecord(place=place, raw=raw, annotated=spec.AnnotatedQuestion(question=question))

    return spec.QuestionForm(format=FORMAT, read=read)


def _pages(line: FlashragQuestion) -> tuple[GoldParagraph, ...]:
    """The pages that support the answer as gold, which any of their passages counts as; none where there are none."""
    try:
        metadata = msgspec.convert(line.metadata or {}, _Metadata)
    except msgspec.ValidationError:  # what metadata holds is each dataset's own
        return ()
    titles = dict.fromkeys(filter(None, metadata.supporting_facts.title))
    return tuple(GoldParagraph(title=title, text="", by="title") for title in titles)


Context = tuple[tuple[str, tuple[str, ...]], ...]
"""Paragraphs, each a title and its sentences."""

Facts = tuple[tuple[str, int], ...]
"""The sentences that support an answer, each by the title of its paragraph and its number there, from 0."""

Flagged = Iterator[tuple[GoldParagraph, bool]]
"""Paragraphs, each with whether it supports the answer."""

_NESTED = {"context": ("title", "sentences", "content"), "supporting_facts": ("title", "sent_id"), "paragraphs": ()}
"""The fields that hold lists of records, with the names of what their publishers have as plain lists."""


class _Contexts(Struct, frozen=True):
    """The paragraphs of a record in its publishers' form."""

    context: Context = ()
    supporting_facts: Facts = ()
    paragraphs: tuple[ContextParagraph, ...] = ()


def as_published(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with its id and its lists as the publishers' own files have them; other shapes stay as they are."""
    record = {field: _listed(value, _NESTED[field]) if field in _NESTED else value for field, value in row.items()}
    return record | {"_id": str(row["id"])} if "id" in row and "_id" not in row else record


def _listed(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return value
    if not isinstance(value, dict) or not all(isinstance(column, list) for column in value.values()):
        return value
    columns = [value[name] for name in names or value if name in value]
    if len({len(column) for column in columns}) > 1:
        return value
    rows = list(zip(*columns, strict=True))
    return rows if names else [dict(zip(value, row, strict=True)) for row in rows]


def published(place: str, raw: bytes, error: type[InputError] = DatasetError) -> bytes:
    """The same of rows in JSON."""
    return msgspec.json.encode(as_published(decode(raw, dict[str, Any], place, error)))


def in_context(row: Mapping[str, Any], place: str, error: type[InputError]) -> Flagged:
    """The paragraphs of a record; the error names what isn't as it is published."""
    record = as_published(row)
    if isinstance(text := record.get("context"), str) and "supporting_facts" not in record:
        return iter(((GoldParagraph(title=str(record.get("title") or ""), text=text), True),))
    shown = {field: record[field] for field in _Contexts.__struct_fields__ if field in record}
    if not shown.keys() & {"context", "paragraphs"}:
        raise error(f"{place}: there is neither `context` nor `paragraphs`; correct the record or take it out")
    contexts = decode(msgspec.json.encode(shown), _Contexts, place, error)
    if contexts.paragraphs:
        return (paragraph.flagged() for paragraph in contexts.paragraphs)
    return supported(contexts.context, contexts.supporting_facts)


def supported(context: Context, facts: Iterable[tuple[str, int]]) -> Flagged:
    """The paragraphs of a context; those with supporting facts have these sentences, where the numbers are theirs."""
    numbers: dict[str, set[int]] = {}
    for title, number in facts:
        numbers.setdefault(title, set()).add(number)
    for title, sentences in context:
        there = [sentences[number].strip() for number in sorted(numbers.get(title, ())) if 0 <= number < len(sentences)]
        paragraph = GoldParagraph(title=title, text=joined(sentences), facts=tuple(filter(None, there)))
        yield paragraph, title in numbers


def row_paragraphs(place: str, raw: bytes) -> Iterator[tuple[str, str]]:
    """The titles and texts of the paragraphs of a record, for `cotrail index`."""
    found = in_context(decode(raw, dict[str, Any], place, CorpusError), place, CorpusError)
    return ((paragraph.title, paragraph.text) for paragraph, _ in found)
