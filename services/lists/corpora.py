"""Corpora: paragraphs of files made searchable under a name, their list and their removal."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import Engine

from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.retriever import SearchRequest
from cotrail.data.corpora.documents import look_into
from cotrail.data.corpora.files import read_corpus
from cotrail.engines.retrieval.bm25 import Bm25Options
from cotrail.engines.retrieval.corpus_store import DEFAULT_INDEX, NewIndex
from cotrail.engines.retrieval.index_manifest import IndexManifest
from cotrail.engines.retrieval.manifest import unknown
from cotrail.errors import InputError, StepError, UnknownNameError
from cotrail.models.queries.runs import searching_runs
from cotrail.services.access.corpora import SeenCorpora, seen_corpora

USUAL = Bm25Options()
"""How runs search unless they say otherwise."""

MOST_OF_TITLE = 100
"""The most paragraphs of a title that are named."""


class Indexed(Struct, frozen=True, kw_only=True):
    """A corpus that was just indexed; left_out: files of the folders that are no documents."""

    corpus: str
    paragraphs: int
    revision: str
    seconds: float
    left_out: int = 0


def _silent(_: int) -> None:
    """Reports nothing."""


def index(
    paths: Sequence[Path], name: str, progress: Callable[[int], None] = _silent, new: NewIndex = DEFAULT_INDEX
) -> Indexed:
    """Indexes the files as the corpus of that name; one that is there is replaced once the new one is complete.

    progress: called with the number of paragraphs so far. new: which engine searches the corpus, and how.
    """
    started = time.monotonic()
    manifest = seen_corpora().build(name, read_corpus(paths), progress, new)
    return Indexed(
        corpus=name,
        paragraphs=manifest.paragraphs,
        revision=manifest.revision,
        seconds=time.monotonic() - started,
        left_out=sum(look_into(path).others for path in paths if path.is_dir()),
    )


class ListedCorpus(Struct, frozen=True, kw_only=True):
    """A corpus, and the engine that searches it; bytes, built_at: None where its store doesn't say."""

    corpus: str
    engine: str
    paragraphs: int
    revision: str
    analyzer: str
    location: str
    bytes: int | None
    built_at: datetime | None


class FoundParagraph(Struct, frozen=True, kw_only=True):
    """A paragraph that a search found; rank: from 1; score: the engine's, which only compares within one search.

    matched: its words that stand in the query, as they are written; none where no analyzer is installed to tell.
    """

    rank: int
    score: float
    id: str
    title: str
    text: str
    matched: tuple[str, ...] = ()


class Found(Struct, frozen=True, kw_only=True):
    """What a search by hand found in a corpus, the best first."""

    corpus: str
    revision: str
    query: str
    paragraphs: tuple[FoundParagraph, ...]


class ShownParagraph(Struct, frozen=True, kw_only=True):
    """A paragraph of a corpus.

    digest: names its content, in all corpora; of_title: the ids of those of its title, itself included, at most
    `MOST_OF_TITLE`.
    """

    corpus: str
    revision: str
    id: str
    title: str
    text: str
    digest: str
    of_title: tuple[str, ...]


def search(name: str, query: str, count: int, options: Bm25Options = USUAL) -> Found:
    """The best paragraphs of a corpus for a query.

    Raises UnknownNameError, and InputError where the corpus can't be searched with these options.
    """
    corpus = seen_corpora().open(name)
    unusual = {key: value for key, value in asdict(options).items() if value != getattr(USUAL, key)}
    try:
        hits = corpus.search(SearchRequest(query=query, count=count, options=unusual))
    except StepError as error:
        raise InputError(str(error)) from error
    matched = _matched(query)
    paragraphs = tuple(
        FoundParagraph(
            rank=hit.rank,
            score=hit.score,
            id=hit.paragraph.id,
            title=hit.paragraph.title,
            text=hit.paragraph.text,
            matched=matched(hit.paragraph),
        )
        for hit in hits
    )
    return Found(corpus=name, revision=corpus.revision, query=query, paragraphs=paragraphs)


def _matched(query: str) -> Callable[[Paragraph], tuple[str, ...]]:
    """Tells the words of a paragraph that stand in the query."""
    try:
        from cotrail.engines.retrieval.matched_words import MatchedWords
    except ModuleNotFoundError:  # with a search server, tantivy needn't be installed
        return lambda _: ()
    words = MatchedWords(query)
    return lambda paragraph: words.of(paragraph.title, paragraph.text)


def show_paragraph(name: str, id_: str) -> ShownParagraph:
    """The paragraph of that id; raises UnknownNameError."""
    corpus = seen_corpora().open(name)
    paragraph = corpus.paragraphs([id_]).get(id_)
    if paragraph is None:
        raise UnknownNameError(f"the corpus {name!r} has no paragraph {id_!r}; search the corpus for it")
    return ShownParagraph(
        corpus=name,
        revision=corpus.revision,
        id=paragraph.id,
        title=paragraph.title,
        text=paragraph.text,
        digest=paragraph.digest,
        of_title=tuple(each.id for each in corpus.titled(paragraph.title)[:MOST_OF_TITLE]),
    )


def list_corpora() -> tuple[ListedCorpus, ...]:
    """Every corpus of the folder and of the search server, by name."""
    corpora = seen_corpora()
    return tuple(_listed(corpora, name, manifest) for name, manifest in corpora.manifests().items())


def describe_corpus(name: str) -> ListedCorpus:
    """The corpus of that name; raises UnknownNameError."""
    corpora = seen_corpora()
    manifests = corpora.manifests()
    if name not in manifests:
        raise unknown(name, manifests)
    return _listed(corpora, name, manifests[name])


def remove_corpus(engine: Engine, name: str) -> ListedCorpus:
    """Removes a corpus for good; raises UnknownNameError, and InputError while a run that hasn't ended searches it."""
    description, corpora = describe_corpus(name), seen_corpora()
    with engine.connect() as connection:
        if searching := searching_runs(connection, corpora.stored(name)):
            named = ", ".join(dict.fromkeys(each or "of other projects" for each in searching))
            raise InputError(
                f"the corpus {name!r} is searched by runs that haven't ended ({named}); wait for them, "
                "or end each with `cotrail cancel RUN`"
            )
    corpora.remove(name)
    return description


def _listed(corpora: SeenCorpora, name: str, manifest: IndexManifest) -> ListedCorpus:
    extent = corpora.extent(name)
    return ListedCorpus(
        corpus=name,
        engine=manifest.engine,
        paragraphs=manifest.paragraphs,
        revision=manifest.revision,
        analyzer=manifest.analyzer,
        location=extent.location,
        bytes=extent.bytes,
        built_at=extent.built_at,
    )
