"""Searching a corpus in one line."""

from typing import Any

from cotrail.core.ports.retriever import Retriever, Scope, SearchRequest
from cotrail.core.questions import Hit


def search(
    corpus: Retriever, query: str, count: int, titles: tuple[str, ...] = (), *, scope: Scope = "only", **options: Any
) -> tuple[Hit, ...]:
    """What the corpus finds for a request of these."""
    return corpus.search(SearchRequest(query=query, count=count, titles=titles, scope=scope, options=options))
