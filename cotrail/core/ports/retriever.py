"""Port of search engines."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

from msgspec import structs

from cotrail.core.paragraphs import Hit, Paragraph

Field = Literal["all", "title"]
"""The fields that a query is compared with: title and text, or the title alone."""

Scope = Literal["only", "after"]
"""Use of titles in a search: `only` searches their paragraphs, `after` filters the best `count` of a search (as
IRCoT's released code does)."""

BUFFER = 100
"""The number of best paragraphs that are searched for equal texts, as in IRCoT's released code."""


class Retriever(Protocol):
    """Searches one corpus."""

    @property
    def revision(self) -> str:
        """The digest of everything that decides a search's result: paragraphs, analyzer, ranking parameters."""

    def search(
        self,
        query: str,
        count: int,
        titles: tuple[str, ...] = (),
        *,
        scope: Scope = "only",
        field: Field = "all",
        distinct: bool = False,
    ) -> tuple[Hit, ...]:
        """The best `count` paragraphs, the best first, equal scores by paragraph id. An empty query finds nothing.

        titles: where given, only paragraphs of these titles, as `scope` says.
        field: the fields that are compared with the query. distinct: paragraphs of the same text count as one, see
            `best`.
        Raises StepError, TransientStepError, CorpusChangedError, and UnavailableError where the corpus is on a server
        that is away or refuses requests.
        """


class Corpus(Retriever, Protocol):
    """A corpus whose paragraphs can also be looked up."""

    def paragraphs(self, ids: Sequence[str]) -> dict[str, Paragraph]:
        """The paragraphs of these ids, by id; unknown ids are left out."""

    def titled(self, title: str) -> tuple[Paragraph, ...]:
        """The paragraphs of exactly this title, by id."""


def best(ranked: Callable[[int], tuple[Hit, ...]], count: int, *, distinct: bool) -> tuple[Hit, ...]:
    """The best `count` of the hits that `ranked` returns for a number of hits.

    distinct: paragraphs of the same text, whatever its case, count as one, which takes the place of the lowest of them
        among the best `BUFFER`, as in IRCoT's released code (`retriever_server/elasticsearch_retriever.py`).
    """
    if not distinct:
        return ranked(count)
    last = {hit.paragraph.text.strip().lower(): hit for hit in ranked(max(count, BUFFER))}
    return _numbered(sorted(last.values(), key=lambda hit: hit.score, reverse=True)[:count])


def picked(hits: Iterable[Hit], titles: Iterable[str]) -> tuple[Hit, ...]:
    """The hits whose paragraphs have one of these titles, whatever their case, with new ranks."""
    wanted = {title.strip().lower() for title in titles}
    return _numbered(hit for hit in hits if hit.paragraph.title.strip().lower() in wanted)


def _numbered(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    return tuple(structs.replace(hit, rank=rank) for rank, hit in enumerate(hits, start=1))
