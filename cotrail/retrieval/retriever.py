"""The port that every search engine is reached through."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import structs

from cotrail.actions import Field, Scope
from cotrail.paragraphs import Hit, Paragraph


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
        Raises StepError, TransientStepError, CorpusChangedError, and UnavailableError where the corpus is behind a
        server that can't be reached or takes no requests.
        """


class Corpus(Retriever, Protocol):
    """A corpus whose paragraphs can also be looked up."""

    def paragraphs(self, ids: Sequence[str]) -> dict[str, Paragraph]:
        """Those of the paragraphs that are there, by id."""

    def titled(self, title: str) -> tuple[Paragraph, ...]:
        """The paragraphs of exactly this title, by id."""


def picked(hits: Iterable[Hit], titles: Iterable[str]) -> tuple[Hit, ...]:
    """Those hits whose paragraphs have one of these titles, whatever their case, ranked anew."""
    wanted = {title.strip().lower() for title in titles}
    kept = (hit for hit in hits if hit.paragraph.title.strip().lower() in wanted)
    return tuple(structs.replace(hit, rank=rank) for rank, hit in enumerate(kept, start=1))
