"""Interface of the stores that keep corpora by name: folders, and a search server that every host reaches."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct

from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.retriever import Corpus
from cotrail.engines.retrieval.index_manifest import IndexManifest


class Extent(Struct, frozen=True, kw_only=True):
    """How large an index is, and when it was built; None where the store doesn't say."""

    location: str
    bytes: int | None = None
    built_at: datetime | None = None


class NewIndex(Struct, frozen=True, kw_only=True):
    """How an index is to be built. engine: its engine's name; the store's own without one. settings: the engine's."""

    engine: str | None = None
    settings: Mapping[str, Any] = {}


DEFAULT_INDEX = NewIndex()

CountCallback = Callable[[int], None]
"""Called with the number of paragraphs so far."""


class CorpusStore(Protocol):
    """Keeps corpora by name. Raises UnavailableError where it doesn't respond, InputError for invalid names."""

    def build(
        self,
        name: str,
        paragraphs: Iterable[Paragraph],
        progress: CountCallback | None = None,
        new: NewIndex = DEFAULT_INDEX,
    ) -> IndexManifest:
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
