"""Raters behind a server: its rerank API, asked for the scores of all texts."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from msgspec import Struct

from cotrail.common.humanize import rounded
from cotrail.core.ports.encoders import DECIMALS, Rating, second_texts
from cotrail.core.ports.rate_limiter import RateLimiter
from cotrail.core.results import Rated
from cotrail.engines.recent_results import RecentResults
from cotrail.engines.server_address import RerankServer
from cotrail.engines.server_calls import Metered, ServerCalls, by_index
from cotrail.errors import StepError

MOST_REQUESTS = 1024
"""The most requests whose scores are kept."""


class _Request(Struct, frozen=True):
    """A text, and distinct others that are scored against it."""

    text: str
    others: tuple[str, ...]


class _Reranked(Struct, frozen=True):
    index: int
    relevance_score: float


class _Reranking(Metered, frozen=True, kw_only=True):
    results: list[_Reranked]


class _Scored(Struct, frozen=True):
    """A text's score, as TEI has it."""

    index: int
    score: float


class ServedRater:
    """A model that a server runs; see `Rater`.

    server, identity: its table, and its identity; limiter: shares out what its account may use.
    Each rating is a request, or several where it has more texts than `batch_size`; never do two share one, since some
    models read all texts of a request together. Raises BlockedError where its API key isn't set.
    """

    def __init__(self, server: RerankServer, identity: str, limiter: RateLimiter) -> None:
        self._server = server
        self.identity = identity
        self._calls = ServerCalls(server, limiter)
        # Of requests that are sent together, those that were answered needn't be paid again where another one fails.
        self._recent: RecentResults[_Request, dict[str, float]] = RecentResults()

    def rate(self, ratings: Sequence[Rating]) -> list[Rated]:
        """See `Rater`; raises UnavailableError, BlockedError and Interrupted too."""
        asked = [self._requests(rating) for rating in ratings]
        distinct = list(dict.fromkeys(request for requests in asked for request in requests))
        answered = dict(zip(distinct, self._calls.at_once(self._scores, distinct), strict=True))
        return [
            _rated(rating, [answered[request] for request in requests])
            for rating, requests in zip(ratings, asked, strict=True)
        ]

    def interrupt(self) -> None:
        self._calls.interrupt()

    def _requests(self, rating: Rating) -> list[_Request]:
        others, size = tuple(dict.fromkeys(second_texts(rating))), self._server.batch_size
        return [_Request(rating.text, others[n : n + size]) for n in range(0, len(others), size)]

    def _scores(self, request: _Request) -> dict[str, float]:
        known = self._recent.known([request])
        if request not in known:
            known[request] = dict(zip(request.others, self._asked(request), strict=True))
            self._recent.keep(known, MOST_REQUESTS)
        return known[request]

    def _asked(self, request: _Request) -> list[float]:
        sent, count = [request.text, *request.others], len(request.others)
        if self._server.api == "tei":
            body = {"query": request.text, "texts": list(request.others), "raw_scores": self._server.raw_scores}
            scored = self._calls.ask(body, list[_Scored], sent)
            scores = by_index(((each.index, each.score) for each in scored), count)
        else:
            reranking = self._calls.ask(self._body(request), _Reranking, sent)
            scores = by_index(((each.index, each.relevance_score) for each in reranking.results), count)
        if not all(map(isfinite, scores)):
            raise StepError(f"{self._server.url} answered scores that aren't numbers: look at its model")
        return [rounded(score, DECIMALS) for score in scores]

    def _body(self, request: _Request) -> dict[str, Any]:
        others = list(request.others)
        return {"model": self._server.model, "query": request.text, "documents": others, "top_n": len(others)}


def _rated(rating: Rating, answered: Sequence[dict[str, float]]) -> Rated:
    scores = {other: score for each in answered for other, score in each.items()}
    return Rated(scores=tuple(scores[other] for other in second_texts(rating)))
