"""A search engine whose indexes are corpora: one record of how they are built and opened.

A new one is a module with such a record, and a line in `registry`.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct

from cotrail.common import nearest
from cotrail.common.optional_packages import extra_with, not_installed
from cotrail.common.refusals import refusal
from cotrail.core.ports.retriever import Corpus
from cotrail.core.questions import Paragraph
from cotrail.engines.retrieval.manifest import FolderManifest, IndexManifest, Ranking
from cotrail.engines.retrieval.search_server import SearchServer
from cotrail.errors import InputError, UnknownNameError

# Interface of the stores that keep corpora by name: folders, and a search server that every host reaches.


class Extent(Struct, frozen=True, kw_only=True):
    """How large an index is, and when it was built; None where the store doesn't say."""

    location: str
    bytes: int | None = None
    built_at: datetime | None = None


CountCallback = Callable[[int], None]
"""Called with the number of paragraphs so far."""


class NewIndex(Struct, frozen=True, kw_only=True):
    """How an index is to be built.

    engine: its engine's name; the store's own without one. settings: the engine's. progress: is called as it is filled.
    """

    engine: str | None = None
    settings: Mapping[str, Any] = {}
    progress: CountCallback = lambda _: None


DEFAULT_INDEX = NewIndex()


class CorpusStore(Protocol):
    """Keeps corpora by name. Raises UnavailableError where it doesn't respond, InputError for invalid names."""

    def build(self, name: str, paragraphs: Iterable[Paragraph], new: NewIndex = DEFAULT_INDEX) -> IndexManifest:
        """Indexes the paragraphs, whose ids are distinct, as the corpus of that name.

        An existing corpus of that name is searched until the new one is complete; an error or an interruption leaves
        nothing behind.
        """

    def open(self, name: str) -> Corpus:
        """The corpus of that name, with the engine that its manifest names; raises UnknownNameError, which lists those
        there are.
        """

    def manifests(self) -> dict[str, IndexManifest]:
        """The corpora by name, sorted."""

    def remove(self, name: str) -> None:
        """Removes the corpus of that name; raises UnknownNameError, and InputError for one that is only read."""

    def extent(self, name: str) -> Extent:
        """The size and the age of a corpus that is there."""


class NoSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of an engine whose indexes are all alike."""


class IndexEngine(Struct, frozen=True, kw_only=True):
    """What every engine has.

    name: in manifests and for `cotrail index --engine`. library: the distribution that it runs on, for `created_by`.
    format: the revision of its indexes' format. An index of another format isn't opened and has to be built again.
    """

    name: str
    library: str = "cotrail"
    format: int = 1


class FolderEngine(IndexEngine, frozen=True, kw_only=True):
    """An engine whose indexes are folders.

    settings: what `cotrail index --set` may give to an index, each with a default or required.
    ranking: what decides the results of an index with these settings, apart from its paragraphs.
    build: writes the paragraphs, whose ids are distinct, into a new and empty folder; what it returns decides results
        too, and is in the manifest as `built`.
    open: opens that folder; safe for many threads. Any exception means that the index can't be used.
    """

    settings: type[Struct] = NoSettings
    ranking: Callable[[Any], Ranking]
    build: Callable[[Path, Iterable[Paragraph], Any], Struct | Mapping[str, Any] | None]
    open: Callable[[Path, FolderManifest], Corpus]


class ServerEngine(IndexEngine, frozen=True, kw_only=True):
    """A search server; its name is the distribution that the server says it is.

    index: the settings that all its indexes have; mappings: of their fields, in which a document is a paragraph as
        JSON. ranking: what decides results, apart from the paragraphs.
    store: the corpora of a server, with the file of the user's models and the folder of kept embeddings.
    """

    index: dict[str, Any]
    mappings: dict[str, Any]
    ranking: Ranking
    store: Callable[[SearchServer, Path, Path], CorpusStore]


KEPT_EMBEDDINGS = ".embeddings"
"""The folder, among corpora, of embeddings that are kept for further indexes."""

SettingsT = TypeVar("SettingsT", bound=Struct)


def read_settings(engine: str, type_: type[SettingsT], values: Mapping[str, Any]) -> SettingsT:
    """The settings of a new index; InputError names one that the engine lacks or refuses."""
    try:
        return msgspec.convert(dict(values), type_)
    except msgspec.ValidationError as error:
        raise InputError(f"settings of {engine}: {refusal(error, type_, values)}; correct it") from error


# All search engines, by the names that manifests have.

NO_MODELS = Path("models.toml")
"""The file where there is none: only built-in models are known."""


def imported(module: str) -> Any:
    """A module that needs a library of its own; raises NotInstalledError where that isn't there."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = error.name or "a package"
        raise not_installed(package, extra_with(package)) from error


class BuiltInEngine(Struct, frozen=True):
    """An engine that is imported on use, since an installation may have only one of the libraries.

    record: the name of its record in its module; with_models: of a function that returns it, which takes the file of
        the user's models.
    """

    name: str
    module: str
    record: str
    with_models: bool = False

    def imported(self, models: Path) -> IndexEngine:
        """Its record; raises NotInstalledError where its library isn't there."""
        record = getattr(imported(self.module), self.record)
        engine: IndexEngine = record(models) if self.with_models else record
        return engine


ENGINES: dict[str, IndexEngine | BuiltInEngine] = {
    engine.name: engine
    for engine in (
        BuiltInEngine("tantivy", "cotrail.engines.retrieval.tantivy", "TANTIVY"),
        BuiltInEngine("dense", "cotrail.engines.retrieval.dense", "dense_engine", with_models=True),
        BuiltInEngine("late", "cotrail.engines.retrieval.late", "late_engine", with_models=True),
        BuiltInEngine("elasticsearch", "cotrail.engines.retrieval.elasticsearch.store", "ELASTICSEARCH"),
        BuiltInEngine("opensearch", "cotrail.engines.retrieval.elasticsearch.store", "OPENSEARCH"),
    )
}
"""Every engine by its name."""


def find_engine(name: str, models: Path = NO_MODELS) -> IndexEngine:
    """The engine of that name; raises UnknownNameError, and NotInstalledError where its library isn't there.

    models: the file of the user's models, for engines that need one.
    """
    if name not in ENGINES:
        raise UnknownNameError(nearest.unknown("search engine", name, ENGINES))
    engine = ENGINES[name]
    return engine.imported(models) if isinstance(engine, BuiltInEngine) else engine


def folder_engine(name: str, models: Path = NO_MODELS) -> FolderEngine:
    """The engine of that name; raises UnknownNameError for one that keeps no indexes in folders."""
    engine = find_engine(name, models)
    if isinstance(engine, FolderEngine):
        return engine
    raise UnknownNameError(f"the engine {name} keeps no corpora in folders: COTRAIL_SEARCH_URL names its server")


def server_engine(name: str) -> ServerEngine:
    """The engine of that name; raises UnknownNameError for one that is no search server."""
    engine = find_engine(name)
    if isinstance(engine, ServerEngine):
        return engine
    raise UnknownNameError(f"{name} isn't a search server; take Elasticsearch or OpenSearch")
