"""Corpora in a folder, in a folder and on a search server together, and behind servers that are only searched."""

import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from cotrail.common.processes import exclusive_folder
from cotrail.core.ports.retriever import Corpus
from cotrail.core.questions import Paragraph
from cotrail.engines.retrieval.engine import (
    DEFAULT_INDEX,
    KEPT_EMBEDDINGS,
    NO_MODELS,
    CorpusStore,
    Extent,
    FolderEngine,
    NewIndex,
    ServerEngine,
    find_engine,
    folder_engine,
    read_settings,
    server_engine,
)
from cotrail.engines.retrieval.manifest import (
    FILE_NAME,
    FolderManifest,
    IndexManifest,
    Revision,
    checked_name,
    corpora,
    existing_corpus,
    installed,
    read_manifest,
    unknown,
    unusable,
    write_manifest,
)
from cotrail.engines.retrieval.mcp_search import McpCorpus
from cotrail.engines.retrieval.retrieve_server import ServedCorpus, manifest_of
from cotrail.engines.retrieval.search_server import McpSearch, RemoteServer, SearchServer, WebSearch
from cotrail.engines.retrieval.web_search import WebCorpus
from cotrail.errors import CorpusError, CotrailError, InputError, UnknownNameError

# Indexes in folders, of any engine: built whole or not at all, and opened as their manifests say.

PROGRESS_EVERY = 1_000
"""Number of paragraphs between two calls of the progress callback."""


def build_index(
    paragraphs: Iterable[Paragraph],
    directory: Path,
    progress: Callable[[int], None] | None = None,
    *,
    engine: FolderEngine | None = None,
    settings: Struct | None = None,
) -> FolderManifest:
    """Indexes the paragraphs, whose ids are distinct, in this folder.

    An existing index stays as it is, and is searched, until this one is complete; an error or an interruption leaves
    nothing behind. progress: called with the number of paragraphs so far. engine: tantivy without one; settings: of the
    engine's type.
    """
    engine = engine or folder_engine("tantivy")
    settings = engine.settings() if settings is None else settings
    report = progress or (lambda _count: None)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with exclusive_folder(directory, being_built(directory)):
            return _replace(directory, lambda folder: _build(folder, engine, settings, paragraphs, report))
    except (OSError, ValueError) as error:
        raise CorpusError(f"no index can be built in {directory} ({error}); check the folder and its disk") from error


def being_built(directory: Path) -> CorpusError:
    """The error while another process has the folder's lock."""
    return CorpusError(f"another process is building the index in {directory}; wait until it is done")


def open_index(directory: Path, models: Path = NO_MODELS) -> Corpus:
    """The index in this folder; raises CorpusError where there is none that can be used, NotInstalledError.

    models: the file of the user's models, for engines that need one.
    """
    manifest = read_manifest(directory)
    try:
        engine = folder_engine(manifest.engine, models)
        if manifest.format != engine.format:
            raise unusable(directory, "it was built by another version of cotrail")
        return engine.open(directory / manifest.folder, manifest)
    except UnknownNameError as error:
        by = manifest.engine or "another version of cotrail"
        raise unusable(
            directory, f"it was built by {by}, which isn't here; of an extension, start the workers again"
        ) from error
    except CotrailError:
        raise
    except Exception as error:
        raise unusable(directory, error) from error


def _replace(directory: Path, build: Callable[[Path], FolderManifest]) -> FolderManifest:
    """Builds the index next to the former one, switches to it by replacing the manifest, and deletes the former."""
    folder = directory / f"index-{secrets.token_hex(6)}"
    try:
        manifest = build(folder)
        write_manifest(directory, manifest)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # it isn't empty where there is a former index
            directory.rmdir()
        raise
    # Only now: until the manifest is replaced, processes that open the corpus are led to the former index.
    for other in directory.glob("index-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    return manifest


def _build(
    folder: Path,
    engine: FolderEngine,
    settings: Struct,
    paragraphs: Iterable[Paragraph],
    progress: Callable[[int], None],
) -> FolderManifest:
    ranking, recorded = engine.ranking(settings), msgspec.to_builtins(settings)
    revision = Revision(ranking, recorded)
    folder.mkdir()
    built = msgspec.to_builtins(engine.build(folder, _reported(revision, paragraphs, progress), settings)) or {}
    revision.add(built)
    progress(revision.count)
    return FolderManifest(
        revision=str(revision),
        paragraphs=revision.count,
        created_by={name: installed(name) for name in dict.fromkeys(("cotrail", engine.library))},
        engine=engine.name,
        format=engine.format,
        settings=recorded,
        built=built,
        folder=folder.name,
        **structs.asdict(ranking),
    )


def _reported(
    revision: Revision, paragraphs: Iterable[Paragraph], progress: Callable[[int], None]
) -> Iterator[Paragraph]:
    for paragraph in revision.counted(paragraphs):
        yield paragraph
        if revision.count % PROGRESS_EVERY == 0:
            progress(revision.count)


class FolderStore:
    """Corpora that are folders in one folder; each is searched by the engine that its manifest names."""

    def __init__(self, folder: Path, models: Path = NO_MODELS) -> None:
        self._folder = folder
        self._models = models

    def build(self, name: str, paragraphs: Iterable[Paragraph], new: NewIndex = DEFAULT_INDEX) -> IndexManifest:
        """Indexes the paragraphs as the corpus of that name: without an engine by tantivy, with a `model` by `dense`,
        with `late` by that.

        Raises CorpusError where the folder can't be written, UnknownNameError, NotInstalledError, and InputError for
        settings that the engine doesn't take.
        """
        usual = "late" if "late" in new.settings else "dense" if "model" in new.settings else "tantivy"
        engine = folder_engine(new.engine or usual, self._models)
        directory = self._folder / checked_name(name)
        settings = read_settings(engine.name, engine.settings, new.settings)
        return build_index(paragraphs, directory, new.progress, engine=engine, settings=settings)

    def open(self, name: str) -> Corpus:
        """The corpus of that name; raises UnknownNameError, which lists those there are."""
        return open_index(existing_corpus(self._folder, name), self._models)

    def manifests(self) -> dict[str, IndexManifest]:
        return dict(corpora(self._folder))

    def remove(self, name: str) -> None:
        """Removes the corpus of that name; raises UnknownNameError. Processes that search it keep it open."""
        directory = existing_corpus(self._folder, name)
        with exclusive_folder(directory, being_built(directory)):
            # First of all, so that an interruption leaves no corpus that can't be searched.
            (directory / FILE_NAME).unlink()
            shutil.rmtree(directory)

    def extent(self, name: str) -> Extent:
        directory = existing_corpus(self._folder, name)
        size = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
        built_at = datetime.fromtimestamp((directory / FILE_NAME).stat().st_mtime, UTC)
        return Extent(location=str(directory), bytes=size, built_at=built_at)


class JoinedStores:
    """A search server's corpora and a folder's, of which a name of both means the server's."""

    def __init__(self, server: CorpusStore, folder: CorpusStore) -> None:
        self._server = server
        self._folder = folder

    def build(self, name: str, paragraphs: Iterable[Paragraph], new: NewIndex = DEFAULT_INDEX) -> IndexManifest:
        if new.engine is None or isinstance(find_engine(new.engine), ServerEngine):
            return self._server.build(name, paragraphs, new)
        if name in self._server.manifests():
            raise InputError(
                f"the search server has a corpus {name!r}, which hides one in the folder: take another name, or "
                f"`cotrail corpora remove {name}` first"
            )
        return self._folder.build(name, paragraphs, new)

    def open(self, name: str) -> Corpus:
        """The corpus of that name; raises UnknownNameError, which lists those of both."""
        try:
            return self._server.open(name)
        except UnknownNameError:
            return self._keeping(name).open(name)

    def manifests(self) -> dict[str, IndexManifest]:
        return dict(sorted((self._folder.manifests() | self._server.manifests()).items()))

    def remove(self, name: str) -> None:
        self._keeping(name).remove(name)

    def extent(self, name: str) -> Extent:
        return self._keeping(name).extent(name)

    def _keeping(self, name: str) -> CorpusStore:
        if store := next((each for each in (self._server, self._folder) if name in each.manifests()), None):
            return store
        raise unknown(name, self.manifests())


class RemoteCorpora:
    """The corpora behind servers, by the names that `search.toml` has for them, before those of another store."""

    def __init__(self, servers: Mapping[str, RemoteServer], others: CorpusStore) -> None:
        self._servers = servers
        self._others = others

    def build(self, name: str, paragraphs: Iterable[Paragraph], new: NewIndex = DEFAULT_INDEX) -> IndexManifest:
        """Has the other store index the paragraphs; raises InputError where a server has this name."""
        self._check_other(name, "take another name")
        return self._others.build(name, paragraphs, new)

    def open(self, name: str) -> Corpus:
        if server := self._servers.get(name):
            match server:
                case WebSearch():
                    return WebCorpus(name, server)
                case McpSearch():
                    return McpCorpus(name, server)
            return ServedCorpus(name, server)
        try:
            return self._others.open(name)
        except UnknownNameError as error:
            raise (unknown(name, self.manifests()) if self._servers else error) from None

    def manifests(self) -> dict[str, IndexManifest]:
        own = {name: manifest_of(server) for name, server in self._servers.items()}
        return dict(sorted((self._others.manifests() | own).items()))

    def remove(self, name: str) -> None:
        """Has the other store remove the corpus; raises InputError where a server has this name."""
        self._check_other(name, "take it out there")
        self._others.remove(name)

    def extent(self, name: str) -> Extent:
        server = self._servers.get(name)
        return Extent(location=server.place) if server else self._others.extent(name)

    def _check_other(self, name: str, what_to_do: str) -> None:
        if name in self._servers:
            raise InputError(
                f"the corpus {name!r} is behind a server that search.toml names, and is only read; {what_to_do}"
            )


def corpus_store(folder: Path, server: SearchServer | None, models: Path = NO_MODELS) -> CorpusStore:
    """The folder's corpora, and a server's if one is given; models: the file of the user's models."""
    if server is None:
        return FolderStore(folder, models)
    # One adapter for both: only the first request tells which of them the server is.
    kept = folder / KEPT_EMBEDDINGS
    return JoinedStores(server_engine("elasticsearch").store(server, models, kept), FolderStore(folder, models))
