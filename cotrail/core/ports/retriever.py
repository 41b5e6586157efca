"""Port of retrievers: the interface of every search engine."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

from msgspec import structs

from cotrail.core.paragraphs import Hit, Paragraph

Field = Literal["all", "title"]
"""The text that a search compares with the query: title and text, or the title alone."""

Scope = Literal["only", "after"]
"""The effect of titles on a search: `only` their paragraphs are searched, or they are picked `after` the search, from
its best `count` (the released code of IRCoT)."""

BUFFER = 100
"""The number of best paragraphs among which duplicates are looked for, as in IRCoT's released code."""


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
        """The best `count` paragraphs, the best first, equal scores by paragraph id.

        titles: where given, only paragraphs of these titles, as `scope` says. An empty query finds nothing.
        field: what is compared with the query. distinct: whether paragraphs of the same text count as one, see `best`.
        Raises StepError, TransientStepError, CorpusChangedError, and UnavailableError where the corpus is behind a
        server that can't be reached or takes no requests.
        """


class Corpus(Retriever, Protocol):
    """A corpus whose paragraphs can also be looked up."""

    def paragraphs(self, ids: Sequence[str]) -> dict[str, Paragraph]:
        """The paragraphs of these ids, by id; ids that the corpus lacks are left out."""

    def titled(self, title: str) -> tuple[Paragraph, ...]:
        """The paragraphs of exactly this title, by id."""


def best(ranked: Callable[[int], tuple[Hit, ...]], count: int, *, distinct: bool) -> tuple[Hit, ...]:
    """The best `count` hits of those that `ranked` gives, the best first, as many as it is asked for.

    distinct: of paragraphs with the same text, whatever its case, the lowest of the best `BUFFER` counts alone, as in
    IRCoT's released code (`retriever_server/elasticsearch_retriever.py`).
    """
    if not distinct:
        return ranked(count)
    last = {hit.paragraph.text.strip().lower(): hit for hit in ranked(max(count, BUFFER))}
    return _numbered(sorted(last.values(), key=lambda hit: hit.score, reverse=True)[:count])


def picked(hits: Iterable[Hit], titles: Iterable[str]) -> tuple[Hit, ...]:
    """Those hits whose paragraphs have one of these titles, whatever their case, ranked from 1 again."""
    wanted = {title.strip().lower() for title in titles}
    return _numbered(hit for hit in hits if hit.paragraph.title.strip().lower() in wanted)


def _numbered(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    return tuple(structs.replace(hit, rank=rank) for rank, hit in enumerate(hits, start=1))
