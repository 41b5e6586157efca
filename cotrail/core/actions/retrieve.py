"""Searching a corpus."""

from typing import Any, Literal

from cotrail.common.structs import unusual, without_unused
from cotrail.core.actions.kind import ActionKind, EngineNames, Engines
from cotrail.core.binding import FURTHER_CORPUS, Binding
from cotrail.core.ports.retriever import Retriever, Scope, SearchRequest
from cotrail.core.results import Json, Retrieved
from cotrail.core.system import Action

Field = Literal["all", "title"]


class Retrieve(Action, frozen=True, kw_only=True):
    """Find the best `count` paragraphs for a query, of any page or only of the titles given.

    field, distinct: BM25's options: what the query is compared with, and whether paragraphs of the same text count as
        one; see `cotrail.engines.retrieval.search_server`. options: those of other retrievers.
    corpus: the name of one of the run's corpora; the first one's without it.
    """

    query: str
    count: int
    titles: tuple[str, ...] = ()
    scope: Scope = "only"
    field: Field = "all"
    distinct: bool = False
    options: dict[str, Any] | None = None
    corpus: str = ""


def retrieved(retriever: Retriever, action: Retrieve) -> Retrieved:
    """The result of a search; raises what `Retriever.search` does."""
    request = SearchRequest(
        query=action.query,
        count=action.count,
        titles=action.titles,
        scope=action.scope,
        options=unusual(action, "field", "distinct") | (action.options or {}),
    )
    return Retrieved(hits=retriever.search(request))


def _carry_out(action: Retrieve, engines: Engines) -> Retrieved:
    return retrieved(engines.retriever(action.corpus), action)


def _decides(action: Retrieve, binding: Binding) -> Json:
    _, revision = binding.corpus(action.corpus)
    searched = {"query": action.query, "count": action.count, "titles": action.titles, "corpus": revision}
    return searched | unusual(action, "scope", "field", "distinct", "options")


def _corpus(action: Retrieve, names: EngineNames) -> str:
    return f"the corpus {names.binding.corpus(action.corpus)[0]}"


RETRIEVE = ActionKind(
    name="retrieve",
    action=Retrieve,
    result=Retrieved,
    role="retrieval",
    deadline=600,
    carry_out=_carry_out,
    decides=_decides,
    request=lambda action: without_unused(action, "options", "corpus"),
    query="query",
    pinned=lambda request: FURTHER_CORPUS + request.get("corpus", ""),
    need="the search server",
    named_need=_corpus,
)
