"""Corpora: made, listed, searched by hand, removed."""

from typing import Annotated

from msgspec import Meta

from cotrail.core.actions.retrieve import Field
from cotrail.engines.retrieval.bm25 import Bm25Options
from cotrail.services.access.actor import Scope
from cotrail.services.jobs.indexing import IndexRequest, queue_index
from cotrail.services.jobs.job import Job
from cotrail.services.lists import corpora
from cotrail.services.lists.corpora import Found, ListedCorpus, ShownParagraph
from cotrail.services.lists.paragraph_uses import ParagraphUses, read_uses
from cotrail.services.operations.jobs import queued, queued_before
from cotrail.services.operations.operation import operation
from cotrail.services.store import open_store, reading

Count = Annotated[int, Meta(ge=1, le=1000)]
Query = Annotated[str, Meta(min_length=1, max_length=100_000)]


@operation("POST", "/corpora", Scope.SUBMIT, status=202, again=queued_before)
def make(request: IndexRequest) -> Job:
    """Queue a corpus to be made of uploaded files; one of that name is replaced once the new one is complete.

    The same request again makes nothing more.
    """
    return queued(lambda connection: queue_index(connection, request))


@operation("GET", "/corpora", Scope.READ)
def index() -> tuple[ListedCorpus, ...]:
    """List the corpora by name."""
    return corpora.list_corpora()


@operation("GET", "/corpora/{corpus}", Scope.READ)
def show(corpus: str) -> ListedCorpus:
    """Show a corpus."""
    return corpora.describe_corpus(corpus)


@operation("POST", "/corpora/{corpus}/search", Scope.READ)
def search(corpus: str, query: Query, k: Count = 10, field: Field = "all", *, distinct: bool = False) -> Found:
    """Search a corpus by hand.

    field: what the query is compared with, title and text or the title alone; distinct: paragraphs of the same text
    count as one.
    """
    return corpora.search(corpus, query, k, Bm25Options(field=field, distinct=distinct))


@operation("GET", "/corpora/{corpus}/paragraphs/{paragraph}", Scope.READ)
def paragraph(corpus: str, paragraph: str) -> ShownParagraph:
    """Show a paragraph of a corpus, by its id there."""
    return corpora.show_paragraph(corpus, paragraph)


@operation("GET", "/paragraphs/{digest}/uses", Scope.READ)
def uses(digest: str, limit: Count = 50, after: str | None = None) -> ParagraphUses:
    """List the questions whose searches found a paragraph, the latest first; digest: that of its title and text."""
    with reading() as connection:
        return read_uses(connection, digest, limit, after)


@operation("DELETE", "/corpora/{corpus}", Scope.OPERATE)
def remove(corpus: str) -> ListedCorpus:
    """Remove a corpus for good, unless a run that hasn't ended searches it."""
    with open_store() as engine:
        return corpora.remove_corpus(engine, corpus)
