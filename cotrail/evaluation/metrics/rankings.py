"""Rankings against judged documents: NDCG, recall and reciprocal rank, with trec_eval's arithmetic.

trec_eval's measures are `ndcg_cut`, `recall` and `recip_rank` (usnistgov/trec_eval, `m_ndcg_cut.c`, `m_recall.c`,
`m_recip_rank.c`), which BEIR's figures are too, through pytrec_eval. The ranking is that of the paragraphs in the order
in which they were found, over all searches of a question.
"""

from collections.abc import Sequence
from math import log2

from msgspec import Struct


class Judged(Struct, frozen=True):
    """A gold document: its grade, and the rank from 1 at which it was first found; None where it wasn't."""

    grade: int
    rank: int | None


def ndcg(documents: Sequence[Judged], cut: int) -> float | None:
    """The discounted gain of the first `cut` paragraphs over that of the best order; None where nothing is judged.

    A document gains its grade, divided by the binary logarithm of its rank plus 1.
    """
    if not documents:
        return None
    best = sorted((each.grade for each in documents), reverse=True)[:cut]
    gained = (each.grade / log2(each.rank + 1) for each in documents if each.rank and each.rank <= cut)
    return sum(gained) / sum(grade / log2(rank + 1) for rank, grade in enumerate(best, start=1))


def recall_at(documents: Sequence[Judged], cut: int) -> float | None:
    """Share of the documents that are among the first `cut` paragraphs; None where nothing is judged."""
    if not documents:
        return None
    return sum(each.rank is not None and each.rank <= cut for each in documents) / len(documents)


def reciprocal_rank(documents: Sequence[Judged]) -> float | None:
    """1 over the rank of the first document found, 0 where none was; None where nothing is judged."""
    if not documents:
        return None
    return max((1 / each.rank for each in documents if each.rank), default=0.0)
