"""Corpora: made, listed, searched by hand, removed."""

from typing import Annotated

from msgspec import Meta

from cotrail.services.access.actor import Scope
from cotrail.services.jobs.indexing import IndexRequest, queue_index
from cotrail.services.jobs.job import Job
from cotrail.services.lists import corpora
from cotrail.services.lists.corpora import Found, ListedCorpus
from cotrail.services.operations.jobs import queued, queued_before
from cotrail.services.operations.operation import operation
from cotrail.services.store import open_store

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
def search(corpus: str, query: Query, k: Count = 10) -> Found:
    """Search a corpus by hand."""
    return corpora.search(corpus, query, k)


@operation("DELETE", "/corpora/{corpus}", Scope.OPERATE)
def remove(corpus: str) -> ListedCorpus:
    """Remove a corpus for good, unless a run that hasn't ended searches it."""
    with open_store() as engine:
        return corpora.remove_corpus(engine, corpus)
