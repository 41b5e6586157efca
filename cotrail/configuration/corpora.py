"""The corpora that the settings name."""

from cotrail.configuration.settings import Settings
from cotrail.engines.retrieval import stores
from cotrail.engines.retrieval.engine import CorpusStore


def corpora_of(settings: Settings) -> CorpusStore:
    """The store of corpora: the search server's where one is set, and otherwise the folder's."""
    return stores.corpus_store(settings.corpora_path, settings.search_server)
