"""The port that every search engine is reached through."""

from typing import Protocol

from cotrail.actions import Field, Scope
from cotrail.paragraphs import Hit


class Retriever(Protocol):
    """Searches one corpus."""

    @property
    def revision(self) -> str:
        """The digest of everything that decides a search's result: paragraphs, analyzer, ranking parameters."""

    def search(
        self, query: str, count: int, titles: tuple[str, ...] = (), *, scope: Scope = "only", field: Field = "all"
    ) -> tuple[Hit, ...]:
        """The best `count` paragraphs, the best first, equal scores by paragraph id.

        titles: where given, only paragraphs of these titles, as `scope` says. An empty query finds nothing.
        field: what is compared with the query.
        """
