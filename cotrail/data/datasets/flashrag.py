"""Questions as FlashRAG publishes them (RUC-NLPIR/FlashRAG_datasets): one form for all datasets, a question a line.

Search-R1, R1-Searcher, ReSearch and others are evaluated on these files.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.json_files import decode, records
from cotrail.core.questions import GoldParagraph, Question, named
from cotrail.data.datasets import spec
from cotrail.errors import DatasetError

FORMAT = spec.FileFormat("questions as FlashRAG publishes them", None, frozenset({"id", "question", "golden_answers"}))
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
