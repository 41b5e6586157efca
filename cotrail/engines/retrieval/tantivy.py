"""BM25 with tantivy: an index in a folder, memory-mapped and shared by all processes that search it."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec
import tantivy

from cotrail.common.folder_lock import only_builder
from cotrail.core.paragraphs import Hit, Paragraph
from cotrail.core.ports.retriever import Field, Scope, best, picked
from cotrail.engines.retrieval.analysis import ANALYZER, ANALYZERS, english, plain
from cotrail.engines.retrieval.manifest import (
    FolderManifest,
    Revision,
    existing_corpus,
    installed,
    read_manifest,
    unusable,
    write_manifest,
)
from cotrail.errors import CorpusError

K1, B = 1.2, 0.75
"""BM25's parameters; tantivy has them built in."""

HEAP_BYTES = 4_000_000_000
"""Memory that the writer may use before it begins a second segment; it allocates only what it fills."""

MAX_OF_A_TITLE = 10_000
"""More paragraphs than any page has."""

PROGRESS_EVERY = 1_000
"""Number of paragraphs between two calls of the progress callback."""


def build_index(
    paragraphs: Iterable[Paragraph], directory: Path, progress: Callable[[int], None] | None = None
) -> FolderManifest:
    """Indexes the paragraphs, whose ids are distinct, in this folder.

    An existing index stays as it is, and is searched, until this one is complete; an error or an interruption leaves
    nothing behind. progress: called with the number of paragraphs so far.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        busy = CorpusError(f"another process is building the index in {directory}; wait until it is done")
        with only_builder(directory, busy):
            return _replace(directory, paragraphs, progress or (lambda _count: None))
    except (OSError, ValueError) as error:
        raise CorpusError(f"no index can be built in {directory} ({error}); check the folder and its disk") from error


def _replace(directory: Path, paragraphs: Iterable[Paragraph], progress: Callable[[int], None]) -> FolderManifest:
    """Builds the index beside the former one, switches to it by replacing the manifest, and deletes the former."""
    folder = directory / f"index-{secrets.token_hex(6)}"
    try:
        manifest = _write(paragraphs, folder, progress)
        write_manifest(directory, manifest)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # it isn't empty where there is a former index
            directory.rmdir()
        raise
    for other in directory.glob("index-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    return manifest


def _write(paragraphs: Iterable[Paragraph], folder: Path, progress: Callable[[int], None]) -> FolderManifest:
    folder.mkdir()
    # Within a segment tantivy orders equal scores by position, so that sorting by id orders them by id.
    index = tantivy.Index(_schema(), str(folder), reuse=False, sort_by_field="id")
    index.register_tokenizer("english", english())
    revision = Revision(ANALYZER, K1, B)
    with _writer(index) as writer:
        for paragraph in paragraphs:
            writer.add_document(_document(paragraph, revision.add(paragraph)))
            if revision.count % PROGRESS_EVERY == 0:
                progress(revision.count)
    progress(revision.count)
    return FolderManifest(
        revision=str(revision),
        paragraphs=revision.count,
        folder=folder.name,
        analyzer=ANALYZER,
        k1=K1,
        b=B,
        created_by={name: installed(name) for name in ("cotrail", "tantivy")},
    )


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


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", tokenizer_name="raw", index_option="basic", fast=True)
    builder.add_text_field("whole_title", tokenizer_name="raw", index_option="basic")
    # Without positions, which only phrase queries need.
    builder.add_text_field("title", tokenizer_name="english", index_option="freq")
    builder.add_text_field("text", tokenizer_name="english", index_option="freq")
    builder.add_bytes_field("paragraph", stored=True, indexed=False)
    return builder.build()


def _document(paragraph: Paragraph, content: bytes) -> tantivy.Document:
    document = tantivy.Document()
    document.add_text("id", paragraph.id)
    document.add_text("whole_title", paragraph.title)
    document.add_text("title", plain(paragraph.title))
    document.add_text("text", plain(paragraph.text))
    # The whole paragraph, since the other fields can't be read back.
    document.add_bytes("paragraph", content)
    return document


def _open(folder: Path) -> tantivy.Index:
    """Opens an index; where its folder is read-only, by links, since tantivy needs a lock beside the files.

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
    """Searches the index in a folder; raises CorpusError where there is none that can be used. Safe for many threads.

    A paragraph's score is the sum of the BM25 scores of its title and its text; each word of the query is a clause.
    """

    def __init__(self, directory: Path) -> None:
        self.manifest = read_manifest(directory)
        if self.manifest.analyzer not in ANALYZERS:
            raise unusable(directory, "it was built by another version of cotrail")
        try:
            index = _open(directory / self.manifest.folder)
            self._searcher = index.searcher()
        except Exception as error:
            raise unusable(directory, error) from error
        if self._searcher.num_docs != self.manifest.paragraphs:
            raise unusable(directory, "paragraphs are missing")
        self._schema = index.schema
        self._analyzer = english(self.manifest.analyzer)
        self._decoder = msgspec.msgpack.Decoder(Paragraph)

    @property
    def revision(self) -> str:
        """The digest of everything that decides a search's result."""
        return self.manifest.revision

    def search(
        self,
        query: str,
        count: int,
        titles: tuple[str, ...] = (),
        *,
        scope: Scope = "only",
        field: Field = "all",
        distinct: bool = False,
    ) -> tuple[Hit, ...]:
        """The best `count` paragraphs for a query of plain words, the best first, equal scores by paragraph id.

        titles: where given, only paragraphs of these titles. With the scope `only`, exactly these, with unchanged
            scores; with `after`, the titles' words are searched for in titles too, and of the best `count` those of
            these titles are kept, whatever their case (IRCoT's released code). distinct: see `best`.
        """
        words = self._words(query)
        if count < 1 or not words:
            return ()
        matches = self._matches(words, ("title",) if field == "title" else ("title", "text"))
        after = bool(titles) and scope == "after"
        if titles:
            matches = self._named(matches, titles) if after else self._titled(matches, titles)
        hits = best(partial(self._ranked, matches), count, distinct=distinct)
        return picked(hits, titles) if after else hits

    def _ranked(self, query: tantivy.Query, count: int) -> tuple[Hit, ...]:
        found = [(score, self._load(address)) for score, address in self._best(query, count)]
        found.sort(key=lambda hit: (-hit[0], hit[1].id))
        return tuple(
            Hit(paragraph=paragraph, rank=rank, score=score)
            for rank, (score, paragraph) in enumerate(found[:count], start=1)
        )

    def paragraphs(self, ids: Sequence[str]) -> dict[str, Paragraph]:
        """The paragraphs of these ids, by id; unknown ids are left out."""
        if not ids:
            return {}
        query = tantivy.Query.term_set_query(self._schema, "id", list(ids))
        hits = self._searcher.search(query, limit=len(ids), count=False).hits
        return {paragraph.id: paragraph for paragraph in (self._load(address) for _, address in hits)}

    def titled(self, title: str) -> tuple[Paragraph, ...]:
        """The paragraphs of exactly this title, by id."""
        query = tantivy.Query.term_query(self._schema, "whole_title", title, "basic")
        hits = self._searcher.search(query, limit=MAX_OF_A_TITLE, count=False).hits
        return tuple(sorted((self._load(address) for _, address in hits), key=lambda paragraph: paragraph.id))

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
        titled = tantivy.Query.term_set_query(self._schema, "whole_title", list(titles))
        # A constant score of 0: the titles select paragraphs and leave their scores unchanged.
        return matches.and_must_match(tantivy.Query.const_score_query(titled, 0.0))

    def _named(self, matches: tantivy.Query, titles: Sequence[str]) -> tantivy.Query:
        """Adds the titles' words to the query: a single title's must match, those of several only score."""
        occur = tantivy.Occur.Must if len(titles) == 1 else tantivy.Occur.Should
        named = [self._matches(words, ("title",)) for title in titles if (words := self._words(title))]
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, matches), *((occur, query) for query in named)])

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


def open_corpus(corpora: Path, name: str) -> TantivyRetriever:
    """The retriever for a corpus by its name; raises UnknownNameError, which lists those there are."""
    return TantivyRetriever(existing_corpus(corpora, name))
