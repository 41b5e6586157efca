"""The knowledge sources: which of them are built, and what they know of a text."""

from msgspec import Struct

from cotrail.configuration.settings import settings
from cotrail.core.paragraphs import Hit
from cotrail.core.ports.knowledge import Source
from cotrail.engines.knowledge.store import SOURCES, KnowledgeStore, find_source


class SourceState(Struct, frozen=True, kw_only=True):
    """A source; revision: None where it isn't built."""

    source: str
    revision: str | None
    counts: dict[str, int]


def list_sources() -> tuple[SourceState, ...]:
    """Every source, built or not."""
    return tuple(map(describe_source, SOURCES))


def describe_source(name: str) -> SourceState:
    """The source of that name; raises UnknownNameError."""
    source: Source = find_source(name)
    store = knowledge_store()
    if source not in store.names():
        return SourceState(source=source, revision=None, counts={})
    about = store.about(source)
    return SourceState(source=source, revision=store.revision(source), counts=about.counts if about else {})


def look_up(name: str, text: str, other: str) -> tuple[Hit, ...]:
    """What a source knows of a text, the best first; raises UnknownNameError where it isn't built."""
    return knowledge_store().open(find_source(name)).lookup(text, other)


def knowledge_store() -> KnowledgeStore:
    """The sources in the folder of the settings."""
    return KnowledgeStore(settings().knowledge_path)
