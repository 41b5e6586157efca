"""Hybrid search: one list of several, by reciprocal ranks or by weighted scores, and the options of such searches."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from cotrail.core.questions import Hit, ListPlace
from cotrail.engines.retrieval.search_server import Bm25Options

ListName = Literal["bm25", "dense", "late"]
"""The lists that there are: by words, and by the similarity of embeddings, of texts or of their tokens."""

Way = ListName | Literal["hybrid"]
"""How a corpus is searched: by one list, or by both that it has."""

Weights = Annotated[dict[ListName, Annotated[float, Meta(gt=0, le=1_000_000_000)]], Meta(min_length=1)]
"""The weight of each list; one that isn't named isn't searched."""

FUSED_HITS = 100
"""The best hits of each list that a hybrid search fuses, or as many as are asked for."""


class HybridOptions(Bm25Options, frozen=True, forbid_unknown_fields=True):
    """Options of a search; retriever: another way than the index's own, or the weights of the lists that are fused."""

    retriever: Way | Weights | None = None


Lists = Mapping[ListName, tuple[Hit, ...]]
"""What each list found, the best first."""


def reciprocal_ranks(lists: Lists, constant: int) -> dict[str, float]:
    """Reciprocal rank fusion (Cormack et al. 2009): 1 / (constant + rank) summed over the lists, by paragraph id."""
    scores: dict[str, float] = {}
    for hits in lists.values():
        for hit in hits:
            scores[hit.paragraph.id] = scores.get(hit.paragraph.id, 0.0) + 1 / (constant + hit.rank)
    return scores


def weighted_scores(lists: Lists, weights: Weights) -> dict[str, float]:
    """The weighted mean of the lists' scores, by paragraph id.

    In each list the best hit counts 1 and the last one 0, the others in proportion; a paragraph that isn't in it counts
    0 there, and where all scores of a list are equal, each counts 1.
    """
    total, scores = sum(weights.values()), dict[str, float]()
    for name, hits in lists.items():
        worst, width = (hits[-1].score, hits[0].score - hits[-1].score) if hits else (0.0, 0.0)
        for hit in hits:
            share = (hit.score - worst) / width if width else 1.0
            scores[hit.paragraph.id] = scores.get(hit.paragraph.id, 0.0) + weights[name] / total * share
    return scores


def fused(lists: Lists, scores: Mapping[str, float], count: int) -> tuple[Hit, ...]:
    """The `count` hits of the highest scores, equal ones by id, each with its place in every list that has it."""
    places: dict[str, list[ListPlace]] = {}
    paragraphs = {}
    for name, hits in lists.items():
        for hit in hits:
            paragraphs[hit.paragraph.id] = hit.paragraph
            places.setdefault(hit.paragraph.id, []).append(ListPlace(list=name, rank=hit.rank, score=hit.score))
    ids = sorted(scores, key=lambda each: (-scores[each], each))[:count]
    return tuple(
        Hit(paragraph=paragraphs[each], rank=rank, score=scores[each], lists=tuple(places[each]))
        for rank, each in enumerate(ids, start=1)
    )
