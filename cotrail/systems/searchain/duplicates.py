"""Queries that were asked before (Search-in-the-Chain, algorithm 1, DuplicateQueryDetection)."""

from collections.abc import Sequence

from cotrail.common.answer_normalization import normalized
from cotrail.core.actions.embed import Embed
from cotrail.core.actions.rate import Rate
from cotrail.core.results import Embedded, Rated
from cotrail.core.system import Part, expect
from cotrail.systems.searchain.settings import SearChainSettings


def is_duplicate(query: str, earlier: Sequence[str], settings: SearChainSettings) -> Part[bool]:
    """Whether a query asks what an earlier one asked; no model is asked about a query that equals one."""
    if any(same_query(query, each) for each in earlier):
        return True
    if not earlier or settings.duplicates == "equal":
        return False
    if settings.duplicates == "rater":
        rated = expect((yield Rate(by="duplicate", text=query, others=tuple(earlier))), Rated)
        return any(score > settings.least_rating for score in rated.scores)
    compared = expect((yield Embed(sentences=(query, *earlier))), Embedded)
    return any(similarity >= settings.least_similarity for similarity in compared.similarities[0][1:])


def same_query(one: str, other: str) -> bool:
    """Return whether two queries are equal after normalization; one without words equals only itself."""
    return one == other or normalized(one) == normalized(other) != ""
