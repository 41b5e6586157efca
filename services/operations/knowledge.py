"""Knowledge sources: listed, shown, asked."""

from typing import Annotated

from msgspec import Meta

from cotrail.core.paragraphs import Hit
from cotrail.services.access.actor import Scope
from cotrail.services.lists import knowledge_list
from cotrail.services.lists.knowledge_list import SourceState
from cotrail.services.operations.operation import operation

AskedText = Annotated[str, Meta(max_length=100_000)]


@operation("GET", "/knowledge", Scope.READ)
def index() -> tuple[SourceState, ...]:
    """List the knowledge sources, and which of them are built."""
    return knowledge_list.list_sources()


@operation("GET", "/knowledge/{source}", Scope.READ)
def show(source: str) -> SourceState:
    """Show a knowledge source."""
    return knowledge_list.describe_source(source)


@operation("POST", "/knowledge/{source}/query", Scope.READ)
def query(source: str, text: AskedText, other: AskedText = "") -> tuple[Hit, ...]:
    """Say what a source knows of a text, the best first; other: a second text, for sources that connect two."""
    return knowledge_list.look_up(source, text, other)
