"""All search engines, by the names that manifests have."""

from importlib import import_module

from msgspec import Struct

from cotrail.common import nearest
from cotrail.common.optional_packages import extra_with, not_installed
from cotrail.engines.retrieval.engine import FolderEngine, IndexEngine, ServerEngine
from cotrail.errors import UnknownNameError


class BuiltInEngine(Struct, frozen=True):
    """An engine that is imported on use, since an installation may have only one of the libraries.

    record: the name of its record in its module.
    """

    name: str
    module: str
    record: str

    def imported(self) -> IndexEngine:
        """Its record; raises NotInstalledError where its library isn't there."""
        try:
            engine: IndexEngine = getattr(import_module(self.module), self.record)
        except ModuleNotFoundError as error:
            package = error.name or "a package"
            raise not_installed(package, extra_with(package)) from error
        return engine


ENGINES: dict[str, IndexEngine | BuiltInEngine] = {
    engine.name: engine
    for engine in (
        BuiltInEngine("tantivy", "cotrail.engines.retrieval.tantivy", "TANTIVY"),
        BuiltInEngine("elasticsearch", "cotrail.engines.retrieval.elasticsearch.store", "ELASTICSEARCH"),
        BuiltInEngine("opensearch", "cotrail.engines.retrieval.elasticsearch.store", "OPENSEARCH"),
    )
}
"""Every engine by its name."""


def find_engine(name: str) -> IndexEngine:
    """The engine of that name; raises UnknownNameError, and NotInstalledError where its library isn't there."""
    if name not in ENGINES:
        raise UnknownNameError(nearest.unknown("search engine", name, ENGINES))
    engine = ENGINES[name]
    return engine.imported() if isinstance(engine, BuiltInEngine) else engine


def folder_engine(name: str) -> FolderEngine:
    """The engine of that name; raises UnknownNameError for one that keeps no indexes in folders."""
    engine = find_engine(name)
    if isinstance(engine, FolderEngine):
        return engine
    raise UnknownNameError(f"the engine {name} keeps no corpora in folders: COTRAIL_SEARCH_URL names its server")


def server_engine(name: str) -> ServerEngine:
    """The engine of that name; raises UnknownNameError for one that is no search server."""
    engine = find_engine(name)
    if isinstance(engine, ServerEngine):
        return engine
    raise UnknownNameError(f"{name} isn't a search server; take Elasticsearch or OpenSearch")
