"""All search engines, by the names that manifests have."""

from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import Struct

from cotrail.common import nearest
from cotrail.common.optional_packages import extra_with, not_installed
from cotrail.engines.retrieval.engine import FolderEngine, IndexEngine, ServerEngine
from cotrail.errors import UnknownNameError

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
