"""BM25 with tantivy: an index in a folder, memory-mapped and shared by all processes that search it."""

import itertools
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec
import tantivy
from msgspec import Struct

from cotrail.common.printable_text import cut
from cotrail.core.ports.retriever import SearchRequest, picked
from cotrail.core.questions import FiledParagraph, Hit, Paragraph
from cotrail.engines.retrieval.engine import FolderEngine
from cotrail.engines.retrieval.manifest import FolderManifest, Ranking
from cotrail.engines.retrieval.search_server import Bm25Options, FieldKinds, best, check_fields, check_filter
from cotrail.errors import StepError

# Text analysis of titles, texts and queries: like Elasticsearch's `english` analyzer, from tantivy's parts.

_SINGLE = r"\p{Han}\p{Hiragana}"
_LETTER = rf"[\p{{L}}--[{_SINGLE}]]"

TERM = rf"[{_SINGLE}]|(?:{_LETTER}(?:['‘.:·]{_LETTER})*|\p{{N}}(?:['.,;]\p{{N}})*|\p{{M}}|_)+"  # noqa: RUF001
"""The pattern of a word.

As in Unicode's annex 29, some marks join letters and others digits (`o'neil`, `u.s.a`, `15,140`), none joins a letter
and a digit (`no` and `1` in `No.1`), and each Chinese character or hiragana is a word.
"""

STOP_WORDS = (
    "a an and are as at be but by for if in into is it no not of on or such "
    "that the their then there these they this to was will with"
)
"""Lucene's English stop words."""

ANALYZER = f"2: {TERM}, lower-cased, without 's and Lucene's stop words, stemmed as English"
"""The analyzer's name, which indexes record: an index with another one isn't searched."""

_APOSTROPHES = str.maketrans("’＇", "''")  # noqa: RUF001 - both are written for possessives


def english() -> tantivy.TextAnalyzer:
    """The analyzer; its input has to be what `plain` returns."""
    # The stemmer removes the possessive, but only after the stop words, so that `it's` has to be a stop word too.
    stop_words = [form for word in STOP_WORDS.split() for form in (word, f"{word}'s")]
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.regex(TERM))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.custom_stopword(stop_words))
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )


def plain(text: str) -> str:
    """The text with one kind of apostrophe, and valid as UTF-8."""
    return text.translate(_APOSTROPHES).encode(errors="replace").decode()


# Which words of a text stand in a query, compared as search engines with an English analyzer do.

WORD = re.compile(r"\w+(?:['’＇]\w+)*")  # noqa: RUF001 - all three are written for possessives
"""A word as it is shown."""


class MatchedWords:
    """The words of a query, by which texts are looked through."""

    def __init__(self, query: str) -> None:
        self._analyzer = english()
        self._terms = frozenset(self._terms_of(query))

    def of(self, *texts: str) -> tuple[str, ...]:
        """The words of the texts that match one of the query's, each once, as they are written."""
        words = dict.fromkeys(word for text in texts for word in WORD.findall(text))
        return tuple(word for word in words if not self._terms.isdisjoint(self._terms_of(word)))

    def _terms_of(self, text: str) -> list[str]:
        terms: list[str] = self._analyzer.analyze(plain(text))
        return terms


# BM25 with tantivy: an index in a folder, memory-mapped and shared by all processes that search it.

K1, B = 1.2, 0.75
"""BM25's parameters; tantivy has them built in."""

HEAP_BYTES = 4_000_000_000
"""Memory that the writer may use before it begins a second segment; it allocates only what it fills."""

MAX_OF_A_TITLE = 10_000
"""More paragraphs than any page has."""


class Bm25Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Settings of an index; fields: the metadata by which it can be filtered, and its kinds."""

    fields: FieldKinds = {}

    def __post_init__(self) -> None:
        check_fields(self.fields)


def _build(folder: Path, paragraphs: Iterable[Paragraph], settings: Bm25Settings) -> None:
    # Within a segment tantivy orders equal scores by position, so that sorting by id orders them by id.
    index = tantivy.Index(_schema(settings.fields), str(folder), reuse=False, sort_by_field="id")
    index.register_tokenizer("english", english())
    with _writer(index) as writer:
        for paragraph in paragraphs:
            writer.add_document(_document(paragraph, settings.fields))


@contextmanager
def _writer(index: tantivy.Index) -> Iterator[tantivy.IndexWriter]:
    """Commits what the block writes, or rolls it back; the writer's threads have ended afterwards."""
    # One thread, because several would write a segment each.
    writer = index.writer(heap_size=HEAP_BYTES, num_threads=1)
    try:
        yield writer
        writer.commit()
    except BaseException:
        with suppress(ValueError):  # with a full disk even the rollback fails
            writer.rollback()
            writer.wait_merging_threads()
        raise
    writer.wait_merging_threads()


def _schema(fields: FieldKinds) -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", tokenizer_name="raw", index_option="basic", fast=True)
    builder.add_text_field("whole_title", tokenizer_name="raw", index_option="basic")
    # Without positions, which only phrase queries need.
    builder.add_text_field("title", tokenizer_name="english", index_option="freq")
    builder.add_text_field("text", tokenizer_name="english", index_option="freq")
    builder.add_bytes_field("paragraph", stored=True, indexed=False)
    for name, kind in fields.items():
        if kind == "number":
            builder.add_float_field(name, indexed=True, fast=True)
        else:
            builder.add_text_field(name, tokenizer_name="raw", index_option="basic", fast=True)
    return builder.build()


def _document(paragraph: Paragraph, fields: FieldKinds) -> tantivy.Document:
    document = tantivy.Document()
    document.add_text("id", paragraph.id)
    document.add_text("whole_title", paragraph.title)
    document.add_text("title", plain(paragraph.title))
    document.add_text("text", plain(paragraph.text))
    # The whole paragraph, since the other fields can't be read back.
    document.add_bytes("paragraph", msgspec.msgpack.encode(paragraph))
    values = paragraph.fields if isinstance(paragraph, FiledParagraph) else {}
    for name in fields.keys() & values.keys():
        for value in values[name]:
            document.add_text(name, value) if isinstance(value, str) else document.add_float(name, value)
    return document


def _open(folder: Path) -> tantivy.Index:
    """Opens an index; where its folder is read-only, by links, since tantivy needs a lock next to the files.

    All files are mapped into memory when the index is opened, so that the links aren't needed afterwards.
    """
    if os.access(folder, os.W_OK):
        return tantivy.Index.open(str(folder))
    # tantivy's own watcher may be taking the lock at the same time.
    with tempfile.TemporaryDirectory(prefix="cotrail-index-", ignore_cleanup_errors=True) as links:
        for file in folder.iterdir():
            if file.suffix != ".lock":
                Path(links, file.name).symlink_to(file.absolute())
        return tantivy.Index.open(links)


class TantivyRetriever:
    """Searches the index in a folder. Safe for many threads.

    A paragraph's score is the sum of the BM25 scores of its title and its text; each word of the query is a clause.
    """

    def __init__(self, folder: Path, manifest: FolderManifest) -> None:
        self.manifest = manifest
        if manifest.analyzer != ANALYZER:
            raise ValueError("it was built by another version of cotrail")
        self._fields: FieldKinds = manifest.settings.get("fields", {})
        self._index = index = _open(folder)
        self._searcher = index.searcher()
        if self._searcher.num_docs != manifest.paragraphs:
            raise ValueError("paragraphs are missing")
        self._schema = index.schema
        self._analyzer = english()
        self._decoder = msgspec.msgpack.Decoder(Paragraph)

    @property
    def revision(self) -> str:
        return self.manifest.revision

    def search(self, request: SearchRequest) -> tuple[Hit, ...]:
        """The best paragraphs for a query of plain words, the best first, equal scores by paragraph id.

        Titles with the scope `only` leave scores unchanged; with `after`, the titles' words are searched for in titles
        too, and of the best `count` those of these titles, in any case, are kept (IRCoT's released code).
        """
        options, words = request.options_as(Bm25Options), self._words(request.query)
        chosen = self._filtered(options.filter) if options.filter else None
        if request.count < 1 or not words:
            return ()
        matches = self._matches(words, ("title",) if options.field == "title" else ("title", "text"))
        titles, after = request.titles, bool(request.titles) and request.scope == "after"
        if titles:
            matches = self._named(matches, titles) if after else self._titled(matches, titles)
        if chosen is not None:
            matches = _leaving_scores(matches, chosen)
        hits = best(partial(self._ranked, matches), request.count, distinct=options.distinct)
        return picked(hits, titles) if after else hits

    def _ranked(self, query: tantivy.Query, count: int) -> tuple[Hit, ...]:
        scored = [(score, self._load(address)) for score, address in self._best(query, count)]
        scored.sort(key=lambda hit: (-hit[0], hit[1].id))
        return tuple(
            Hit(paragraph=paragraph, rank=rank, score=score)
            for rank, (score, paragraph) in enumerate(scored[:count], start=1)
        )

    def paragraphs(self, ids: Sequence[str]) -> dict[str, Paragraph]:
        if not ids:
            return {}
        query = tantivy.Query.term_set_query(self._schema, "id", list(ids))
        hits = self._searcher.search(query, limit=len(ids), count=False).hits
        return {paragraph.id: paragraph for paragraph in (self._load(address) for _, address in hits)}

    def titled(self, title: str) -> tuple[Paragraph, ...]:
        query = tantivy.Query.term_query(self._schema, "whole_title", title, "basic")
        hits = self._searcher.search(query, limit=MAX_OF_A_TITLE, count=False).hits
        return tuple(sorted((self._load(address) for _, address in hits), key=lambda paragraph: paragraph.id))

    def among(self, titles: Sequence[str], filter_: str) -> list[str]:
        """The ids of the paragraphs of these titles, if any are given, that the filter lets through."""
        chosen = [self._filtered(filter_)] if filter_ else []
        chosen += [tantivy.Query.term_set_query(self._schema, "whole_title", list(titles))] if titles else []
        query = tantivy.Query.boolean_query([(tantivy.Occur.Must, each) for each in chosen])
        hits = self._searcher.search(query, limit=max(self._searcher.num_docs, 1), count=False).hits
        return [self._load(address).id for _, address in hits]

    def _filtered(self, filter_: str) -> tantivy.Query:
        checked = check_filter(filter_, self._fields)
        try:
            return self._index.parse_query(checked, default_field_names=[])
        except ValueError as error:
            raise StepError(f"the filter {cut(filter_, 100)!r} can't be read ({error}); see Lucene's syntax") from error

    def every(self) -> Iterator[Paragraph]:
        for segment in range(self._searcher.num_segments):
            with suppress(ValueError):  # behind the last one
                for place in itertools.count():
                    stored = self._searcher.doc(tantivy.DocAddress(segment, place))["paragraph"][0]
                    yield msgspec.msgpack.decode(stored, type=FiledParagraph)

    def _words(self, text: str) -> list[str]:
        return self._analyzer.analyze(plain(text))

    def _matches(self, words: Sequence[str], fields: Sequence[str]) -> tantivy.Query:
        return tantivy.Query.boolean_query(
            [
                (tantivy.Occur.Should, tantivy.Query.term_query(self._schema, field, word, "freq"))
                for field in fields
                for word in words
            ]
        )

    def _titled(self, matches: tantivy.Query, titles: Sequence[str]) -> tantivy.Query:
        return _leaving_scores(matches, tantivy.Query.term_set_query(self._schema, "whole_title", list(titles)))

    def _named(self, matches: tantivy.Query, titles: Sequence[str]) -> tantivy.Query:
        """Adds the titles' words to the query: a single title's must match, those of several only score."""
        occur = tantivy.Occur.Must if len(titles) == 1 else tantivy.Occur.Should
        queries = [self._matches(words, ("title",)) for title in titles if (words := self._words(title))]
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, matches), *((occur, query) for query in queries)])

    def _best(self, query: tantivy.Query, count: int) -> list[tuple[float, tantivy.DocAddress]]:
        """The best hits, and with more than one segment all hits that tie with the last of them."""
        everything = max(self._searcher.num_docs, 1)
        limit = min(count, everything)
        hits = self._searcher.search(query, limit=limit, count=False).hits
        # A single segment, the usual case, has its ties in order already.
        while self._searcher.num_segments > 1 and len(hits) == limit < everything and hits[-1][0] == hits[count - 1][0]:
            # Geometric growth needs few searches even where many hits tie.
            limit = min(4 * limit, everything)
            hits = self._searcher.search(query, limit=limit, count=False).hits
        return [hit for hit in hits if hit[0] >= hits[:count][-1][0]]

    def _load(self, address: tantivy.DocAddress) -> Paragraph:
        return self._decoder.decode(self._searcher.doc(address)["paragraph"][0])


def _leaving_scores(matches: tantivy.Query, chosen: tantivy.Query) -> tantivy.Query:
    """What matches of those that are chosen; a constant score of 0 leaves scores as they are."""
    return matches.and_must_match(tantivy.Query.const_score_query(chosen, 0.0))


TANTIVY = FolderEngine(
    name="tantivy",
    library="tantivy",
    settings=Bm25Settings,
    ranking=lambda _: Ranking(analyzer=ANALYZER, k1=K1, b=B),
    build=_build,
    open=TantivyRetriever,
)
