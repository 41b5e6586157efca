"""What systems search: corpora, paragraphs of files made searchable under a name, and knowledge sources."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from cotrail.common.printable_text import storable
from cotrail.common.structs import unusual
from cotrail.configuration.settings import settings
from cotrail.core.actions.retrieve import Field
from cotrail.core.ports.retriever import SearchRequest, Source, WholeCorpus
from cotrail.core.questions import FiledParagraph, Hit, ListPlace, Paragraph
from cotrail.core.search_ways import SearchWay
from cotrail.data.corpora.documents import look_into
from cotrail.data.corpora.files import kept_fields, read_corpus
from cotrail.engines.knowledge.store import SOURCES, KnowledgeStore, find_source
from cotrail.engines.retrieval.engine import DEFAULT_INDEX, NewIndex
from cotrail.engines.retrieval.manifest import IndexManifest, Revision, unknown
from cotrail.engines.retrieval.search_server import LONGEST, Bm25Options
from cotrail.errors import InputError, StepError, UnavailableError, UnknownNameError
from cotrail.models.queries.runs import searching_runs
from cotrail.services.access.grants import SeenCorpora, seen_corpora
from cotrail.services.access.projects import seen_place
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.store import reading

MOST_OF_TITLE = 100
"""The most paragraphs of a title that are named."""

MOST_LEFT_OUT = 5
"""The most files that are named of those that weren't read."""


class Indexed(Struct, frozen=True, kw_only=True):
    """A corpus that was just indexed.

    left_out: how many files of the folders weren't read; such_as: some of them. recall: of an approximate index.
    cut: how many paragraphs are longer than the model reads, so that their beginnings alone count. repeated: how many
    aren't in it, as others before have their title, text and fields.
    """

    corpus: str
    paragraphs: int
    revision: str
    seconds: float
    left_out: int = 0
    such_as: tuple[str, ...] = ()
    recall: float | None = None
    cut: int = 0
    repeated: int = 0


def index(paths: Sequence[Path], name: str, new: NewIndex = DEFAULT_INDEX) -> Indexed:
    """Indexes the files as the corpus of that name; one that is there is replaced once the new one is complete.

    new: which engine searches the corpus, and how.
    Raises InputError at the end, and leaves the corpus that is there, where runs that haven't ended search it and the
    new one isn't the same.
    """
    others = (file.name for path in paths if path.is_dir() for file in look_into(path).others)
    fields, repeated = new.settings.get("fields") or {}, list[str]()
    built = _indexed(_having(fields, read_corpus(paths, fields, repeated.append)), name, new, others)
    return replace(built, repeated=len(repeated))


def _having(fields: Iterable[str], paragraphs: Iterable[Paragraph]) -> Iterator[Paragraph]:
    """The paragraphs; raises InputError behind the last one, which ends the build, where none of them has a field."""
    missing = set(fields)
    for each in paragraphs:
        if missing and isinstance(each, FiledParagraph):
            missing -= each.fields.keys()
        yield each
    if missing:
        raise InputError(f"no record has the field {min(missing)!r}, next to its text: correct `--field`")


def index_again(corpus: str, name: str, new: NewIndex = DEFAULT_INDEX) -> Indexed:
    """Indexes a corpus's paragraphs in another way, as the corpus of that name, which may be the same; see `index`.

    Raises UnknownNameError, and InputError for a corpus that can't be read as a whole.
    """
    paragraphs = every(corpus)
    fields = seen_corpora().manifests()[corpus].settings.get("fields") or {}
    asked = new.settings.get("fields")
    if isinstance(asked, dict) and (unknown := asked.keys() - fields.keys()):
        raise InputError(f"the corpus {corpus!r} has no field {min(unknown)!r}: index its files again, with `--field`")
    settings = {**({"fields": fields} if fields else {}), **new.settings}
    return _indexed(_of_kinds(settings.get("fields", {}), paragraphs), name, replace(new, settings=settings))


def _of_kinds(kinds: Mapping[str, str], paragraphs: Iterable[Paragraph]) -> Iterator[Paragraph]:
    for each in paragraphs:
        if isinstance(each, FiledParagraph):
            yield replace(each, fields=kept_fields(each.fields, kinds, f"the paragraph {each.id!r}"))
        else:
            yield each


def every(corpus: str) -> Iterator[Paragraph]:
    """All paragraphs of a corpus; raises UnknownNameError, and InputError for one that can't be read as a whole."""
    opened = seen_corpora().open(corpus)
    try:
        if isinstance(opened, WholeCorpus):
            return opened.every()
    except StepError as error:
        raise InputError(str(error)) from error
    raise InputError(f"the corpus {corpus!r} is on a server, and isn't read as a whole; index its files again")


def _indexed(paragraphs: Iterable[Paragraph], name: str, new: NewIndex, others: Iterable[str] = ()) -> Indexed:
    """others: files that weren't read."""
    started, corpora = time.monotonic(), seen_corpora()
    former = corpora.manifests().get(name)
    if former is not None and corpora.stored(name) == corpora.own_name(name):  # and doesn't only hide another's
        paragraphs = _replacing(paragraphs, name, former, new)
    manifest = corpora.build(name, paragraphs, new)
    left_out = tuple(others)
    return Indexed(
        corpus=name,
        paragraphs=manifest.paragraphs or 0,
        revision=manifest.revision,
        seconds=time.monotonic() - started,
        left_out=len(left_out),
        such_as=left_out[:MOST_LEFT_OUT],
        recall=manifest.built.get("recall"),
        cut=manifest.built.get("cut", 0),
    )


def searching(name: str, revision: str | None = None) -> str:
    """Names the runs that haven't ended and search the corpus of that name, in this revision if one is given.

    Empty where none do. Raises UnknownNameError.
    """
    stored = seen_corpora().stored(name)
    with reading() as connection:
        found = searching_runs(connection, stored, revision)
    return ", ".join(dict.fromkeys(each or "of other projects" for each in found))


def needing(name: str) -> str:
    """Names those that need the corpus as it is now; empty too where no database answers: indexing needs none."""
    present = seen_corpora().manifests().get(name)
    try:
        return "" if present is None else searching(name, present.revision)
    except UnavailableError:
        return ""


def _replacing(paragraphs: Iterable[Paragraph], name: str, former: IndexManifest, new: NewIndex) -> Iterator[Paragraph]:
    """The paragraphs; raises InputError behind the last one where runs need others than these, which ends the build."""
    revision = Revision(former, former.settings)
    yield from revision.counted(paragraphs)
    same = str(revision) == former.revision and new.engine in (None, former.engine) and not new.settings
    if not same and (named := needing(name)):
        raise InputError(
            f"the corpus {name!r} stays as it was: runs that haven't ended search it ({named}), and what was indexed "
            "now differs; take another name, wait for them, or end each with `cotrail cancel RUN`"
        )


class ListedCorpus(Struct, frozen=True, kw_only=True):
    """A corpus, and the engine that searches it; paragraphs, bytes, built_at: None where its store doesn't say.

    recall: of an approximate index, the share of what exact search finds that it found as it was built.
    cut: see `Indexed`.
    """

    corpus: str
    engine: str
    paragraphs: int | None
    revision: str
    analyzer: str
    location: str
    bytes: int | None
    built_at: datetime | None
    recall: float | None = None
    cut: int = 0


class CorpusHit(Struct, frozen=True, kw_only=True):
    """A paragraph that a search found; rank: from 1; score: the engine's, which only compares within one search.

    matched: its words that stand in the query, as they are written; none where no analyzer is installed to tell.
    lists: its places in the lists that a hybrid search fused.
    """

    rank: int
    score: float
    id: str
    title: str
    text: str
    matched: tuple[str, ...] = ()
    lists: tuple[ListPlace, ...] = ()


class Found(Struct, frozen=True, kw_only=True):
    """What a search by hand found in a corpus, the best first."""

    corpus: str
    revision: str
    query: str
    paragraphs: tuple[CorpusHit, ...]


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


def _matched(query: str) -> Callable[[Paragraph], tuple[str, ...]]:
    """Tells the words of a paragraph that stand in the query."""
    try:
        from cotrail.engines.retrieval.tantivy import MatchedWords
    except ModuleNotFoundError:  # with a search server, tantivy needn't be installed
        return lambda _: ()
    words = MatchedWords(query)
    return lambda paragraph: words.of(paragraph.title, paragraph.text)


Count = Annotated[int, Meta(ge=1, le=1000)]
Filter = Annotated[str, Meta(min_length=1, max_length=LONGEST)]
Query = Annotated[str, Meta(min_length=1, max_length=100_000)]


@operation("corpora.search", "POST", "/corpora/{corpus}/search", Scope.READ)
def search_corpus(
    corpus: str,
    query: Query,
    k: Count = 10,
    field: Field = "all",
    *,
    distinct: bool = False,
    retriever: str | None = None,
    filter: Filter | None = None,  # noqa: A002 - as requests call it
) -> Found:
    """Search a corpus by hand.

    field: what the query is compared with, title and text or the title alone; distinct: paragraphs of the same text
    count as one; retriever: of a corpus with embeddings, another way to search it than its own; filter: what the
    metadata of hits has to be, in Lucene's syntax.
    """
    # Raises UnknownNameError, and InputError where the corpus can't be searched with these options.
    opened, query = seen_corpora().open(corpus), storable(query)
    way = SearchWay(retriever=retriever or "", filter=filter or "")
    by_words = unusual(Bm25Options(field=field, distinct=distinct), "field", "distinct")
    try:
        hits = opened.search(SearchRequest(query=query, count=k, options=by_words | way.options))
    except (StepError, ValueError) as error:
        raise InputError(f"{error}{way.advice if isinstance(error, StepError) else ''}") from error
    matched = _matched(query)
    paragraphs = tuple(
        CorpusHit(
            rank=hit.rank,
            score=hit.score,
            id=hit.paragraph.id,
            title=hit.paragraph.title,
            text=hit.paragraph.text,
            matched=matched(hit.paragraph),
            lists=hit.lists,
        )
        for hit in hits
    )
    return Found(corpus=corpus, revision=opened.revision, query=query, paragraphs=paragraphs)


@operation("corpora.paragraph", "GET", "/corpora/{corpus}/paragraphs/{paragraph}", Scope.READ)
def show_paragraph(corpus: str, paragraph: str) -> ShownParagraph:
    """Show a paragraph of a corpus, by its id there."""
    opened = seen_corpora().open(corpus)
    try:
        found = opened.paragraphs([paragraph]).get(paragraph)
    except StepError as error:
        raise InputError(str(error)) from error
    if found is None:
        raise UnknownNameError(f"the corpus {corpus!r} has no paragraph {paragraph!r}; search the corpus for it")
    return ShownParagraph(
        corpus=corpus,
        revision=opened.revision,
        id=found.id,
        title=found.title,
        text=found.text,
        digest=found.digest,
        of_title=tuple(each.id for each in opened.titled(found.title)[:MOST_OF_TITLE]),
    )


@operation("corpora.index", "GET", "/corpora", Scope.READ)
def list_corpora() -> tuple[ListedCorpus, ...]:
    """List the corpora by name."""
    # Those of the folder and of the search server.
    corpora = seen_corpora()
    return tuple(_listed(corpora, name, manifest) for name, manifest in corpora.manifests().items())


@operation("corpora.show", "GET", "/corpora/{corpus}", Scope.READ)
def describe_corpus(corpus: str) -> ListedCorpus:
    """Show a corpus."""
    corpora = seen_corpora()
    manifests = corpora.manifests()
    if corpus not in manifests:
        raise unknown(corpus, manifests)
    return _listed(corpora, corpus, manifests[corpus])


@operation("corpora.remove", "DELETE", "/corpora/{corpus}", Scope.OPERATE)
def remove_corpus(corpus: str) -> ListedCorpus:
    """Remove a corpus for good, unless a run that hasn't ended searches it."""
    # Raises UnknownNameError, and InputError while a run that hasn't ended searches it.
    description = describe_corpus(corpus)
    if named := searching(corpus):
        raise InputError(
            f"the corpus {corpus!r} is searched by runs that haven't ended ({named}); wait for them, "
            "or end each with `cotrail cancel RUN`"
        )
    seen_corpora().remove(corpus)
    return description


def _listed(corpora: SeenCorpora, name: str, manifest: IndexManifest) -> ListedCorpus:
    extent = corpora.extent(name)
    return ListedCorpus(
        corpus=name,
        engine=manifest.engine,
        paragraphs=manifest.paragraphs,
        revision=manifest.revision,
        analyzer=manifest.analyzer,
        location=seen_place(extent.location),
        bytes=extent.bytes,
        built_at=extent.built_at,
        recall=manifest.built.get("recall"),
        cut=manifest.built.get("cut", 0),
    )


# The knowledge sources: which of them are built, and what they know of a text.


class SourceState(Struct, frozen=True, kw_only=True):
    """A source; revision: None where it isn't built."""

    source: str
    revision: str | None
    counts: dict[str, int]


@operation("knowledge.index", "GET", "/knowledge", Scope.READ)
def list_sources() -> tuple[SourceState, ...]:
    """List the knowledge sources, and which of them are built."""
    return tuple(map(describe_source, SOURCES))


@operation("knowledge.show", "GET", "/knowledge/{source}", Scope.READ)
def describe_source(source: str) -> SourceState:
    """Show a knowledge source."""
    known: Source = find_source(source)
    store = knowledge_store()
    if known not in store.names():
        return SourceState(source=known, revision=None, counts={})
    about = store.about(known)
    return SourceState(source=known, revision=store.revision(known), counts=about.counts if about else {})


AskedText = Annotated[str, Meta(max_length=100_000)]


@operation("knowledge.query", "POST", "/knowledge/{source}/query", Scope.READ)
def look_up(source: str, text: AskedText, other: AskedText = "") -> tuple[Hit, ...]:
    """Say what a source knows of a text, the best first; other: a second text, for sources that connect two."""
    # Raises UnknownNameError where it isn't built.
    return knowledge_store().open(find_source(source)).lookup(text, other)


def knowledge_store() -> KnowledgeStore:
    """The sources in the folder of the settings."""
    return KnowledgeStore(settings().knowledge_path)
