"""Corpora in a folder, and the choice between a folder and a search server."""

import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from cotrail.common.file_locks import exclusive_folder
from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.retriever import Corpus
from cotrail.engines.optional_packages import installed_with
from cotrail.engines.retrieval.corpus_store import CorpusStore, CountCallback, Extent
from cotrail.engines.retrieval.manifest import FILE_NAME, IndexManifest, corpora, corpus_directory, existing_corpus
from cotrail.engines.retrieval.search_server import SearchServer
from cotrail.errors import CorpusError


class FolderStore:
    """Corpora as tantivy indexes, each in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def build(self, name: str, paragraphs: Iterable[Paragraph], progress: CountCallback | None = None) -> IndexManifest:
        """Indexes the paragraphs as the corpus of that name; raises CorpusError where the folder can't be written."""
        # Engines are imported on use, because an installation may have only one of them.
        from cotrail.engines.retrieval.tantivy import build_index

        return build_index(paragraphs, corpus_directory(self._folder, name), progress)

    def open(self, name: str) -> Corpus:
        """The corpus of that name; raises UnknownNameError, which lists those there are."""
        from cotrail.engines.retrieval.tantivy import open_corpus

        return open_corpus(self._folder, name)

    def manifests(self) -> dict[str, IndexManifest]:
        """The manifests of the corpora by name, sorted."""
        return dict(corpora(self._folder))

    def remove(self, name: str) -> None:
        """Removes the corpus of that name; raises UnknownNameError. Processes that search it go on with it."""
        directory = existing_corpus(self._folder, name)
        busy = CorpusError(f"another process is building the index in {directory}; wait until it is done")
        with exclusive_folder(directory, busy):
            # First of all, so that an interruption leaves no corpus that can't be searched.
            (directory / FILE_NAME).unlink()
            shutil.rmtree(directory)

    def extent(self, name: str) -> Extent:
        """The size of the folder, and when its manifest was written."""
        directory = existing_corpus(self._folder, name)
        size = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
        built_at = datetime.fromtimestamp((directory / FILE_NAME).stat().st_mtime, UTC)
        return Extent(location=str(directory), bytes=size, built_at=built_at)


def corpus_store(folder: Path, server: SearchServer | None) -> CorpusStore:
    """The server's corpora if a server is given, otherwise the folder's."""
    if server is None:
        return FolderStore(folder)
    with installed_with("elasticsearch"):
        from cotrail.engines.retrieval.elasticsearch.store import ElasticsearchStore
    return ElasticsearchStore(server)
