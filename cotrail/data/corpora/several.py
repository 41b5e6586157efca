"""Paragraphs looked up in several corpora."""

from collections.abc import Iterable, Sequence

from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.retriever import Corpus


def paragraphs_in(corpora: Iterable[Corpus], ids: Sequence[str]) -> dict[str, Paragraph]:
    """The paragraphs of these ids, of the first corpus that has each."""
    paragraphs: dict[str, Paragraph] = {}
    for corpus in corpora:
        paragraphs = corpus.paragraphs(ids) | paragraphs
    return paragraphs


def titled_in(corpora: Iterable[Corpus], title: str) -> tuple[Paragraph, ...]:
    """The paragraphs of exactly this title in all corpora."""
    return tuple(paragraph for corpus in corpora for paragraph in corpus.titled(title))
