"""Corpora: their list, searches by hand in each way side by side, and paragraphs with the questions that used them."""

from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from cotrail.engines.retrieval.manifest import similarity_of
from cotrail.errors import InputError
from cotrail.services.library import corpora
from cotrail.services.library.corpora import Found
from cotrail.services.results import questions
from cotrail.services.runs import jobs
from cotrail.viewer.page import Shown, page

Query = Annotated[str, Meta(max_length=10_000)]
Count = Annotated[int, Meta(ge=1, le=100)]

INDEX = "index"
"""The kind of jobs that make corpora."""

LOOKED_THROUGH = 100
"""The number of latest jobs among which those are looked for that make corpora."""

ON_A_PAGE = 50


class Way(Struct, frozen=True, kw_only=True):
    """A way to search, with what it found; refused: why the corpus can't be searched so.

    retriever: of a corpus with embeddings; the corpus's own where there is none.
    """

    title: str
    field: Literal["all", "title"] = "all"
    retriever: str | None = None
    found: Found | None = None
    refused: str = ""


TITLE_ALONE = Way(title="The title alone", field="title")
WAYS = (Way(title="Title and text"), TITLE_ALONE)
BOTH, BY_WORDS = Way(title="Words and similarity", retriever="hybrid"), Way(title="Words", retriever="bm25")


@page("/corpora")
def index() -> Shown:
    """The corpora, and the jobs that made some lately or do so now."""
    indexing = [job for job in jobs.show_jobs(limit=LOOKED_THROUGH).jobs if job.kind == INDEX]
    values = {"corpora": corpora.list_corpora(), "jobs": indexing}
    return Shown(
        template="corpora.html", section="corpora", values=values, every=3 if any(job.open for job in indexing) else 0
    )


@page("/corpora/{corpus}")
def show(corpus: str, q: Query = "", k: Count = 10, *, distinct: bool = False) -> Shown:
    """A corpus, and what searches for q find in it, at most k paragraphs each."""
    described = corpora.describe_corpus(corpus)
    kind = similarity_of(described.analyzer)
    ways = (BOTH, Way(title="Similarity", retriever=kind), BY_WORDS, TITLE_ALONE) if kind else WAYS
    found = [_searched(way, corpus, q, k, distinct=distinct) for way in ways] if q.strip() else []
    values = {"corpus": described, "q": q, "k": k, "distinct": distinct, "ways": found}
    return Shown(template="corpus.html", section="corpora", values=values)


@page("/corpora/{corpus}/paragraphs/{paragraph}")
def show_paragraph(corpus: str, paragraph: str, after: str | None = None) -> Shown:
    """A paragraph, and the questions whose searches found it."""
    shown = corpora.show_paragraph(corpus, paragraph)
    values = {"paragraph": shown, "uses": questions.show_uses(shown.digest, ON_A_PAGE, after), "after": after}
    return Shown(template="paragraph.html", section="corpora", values=values)


def _searched(way: Way, corpus: str, query: str, count: int, *, distinct: bool) -> Way:
    try:
        found = corpora.search_corpus(corpus, query, count, way.field, distinct=distinct, retriever=way.retriever)
        return replace(way, found=found)
    except InputError as error:
        return replace(way, refused=str(error))
