"""What searches with BM25 have in common, for every engine."""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from cotrail.core.paragraphs import Hit
from cotrail.core.ports.retriever import numbered

BUFFER_HITS = 100
"""The number of best paragraphs that are searched for equal texts, as in IRCoT's released code."""


class Bm25Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a search.

    field: what the query is compared with: title and text, or the title alone. distinct: paragraphs of the same text
        count as one, see `best`.
    """

    field: Literal["all", "title"] = "all"
    distinct: bool = False


def best(ranked: Callable[[int], tuple[Hit, ...]], count: int, *, distinct: bool) -> tuple[Hit, ...]:
    """The best `count` of the hits that `ranked` returns for a number of hits.

    distinct: paragraphs of the same text in any case count as one, which takes the place of the lowest of them
        among the best `BUFFER`, as in IRCoT's released code (`retriever_server/elasticsearch_retriever.py`).
    """
    if not distinct:
        return ranked(count)
    last = {hit.paragraph.text.strip().lower(): hit for hit in ranked(max(count, BUFFER_HITS))}
    return numbered(sorted(last.values(), key=lambda hit: hit.score, reverse=True)[:count])
