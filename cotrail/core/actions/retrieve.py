"""Finding paragraphs: by a search, by a title, and in a knowledge source."""

from typing import Any, Literal

from msgspec.structs import replace

from cotrail.common.structs import unusual, without_unused
from cotrail.core.actions.kind import ActionKind, EngineNames, Engines
from cotrail.core.binding import FURTHER_CORPUS, Binding
from cotrail.core.ports.retriever import Retriever, Scope, SearchRequest, Source
from cotrail.core.questions import Hit
from cotrail.core.results import Json, Retrieved
from cotrail.core.system import Action
from cotrail.core.views import search_view

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


def _corpus(action: "Retrieve | Open", names: EngineNames) -> str:
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


class Lookup(Action, frozen=True, kw_only=True):
    """Ask a knowledge source about a text, or how the words of two are connected (other); it returns sentences."""

    source: Source
    text: str
    other: str = ""


def _lookup_carry_out(action: Lookup, engines: Engines) -> Retrieved:
    return Retrieved(hits=engines.knowledge(action.source).lookup(action.text, action.other))


def _lookup_decides(action: Lookup, binding: Binding) -> Json:
    decisive = {"source": action.source, "text": action.text, "other": action.other}
    return decisive | {"knowledge": binding.pins.get(action.source, "")}


def _source(action: Lookup, _: EngineNames) -> str:
    return f"the knowledge source {action.source}"


LOOKUP = ActionKind(
    name="lookup",
    action=Lookup,
    result=Retrieved,
    role="retrieval",
    deadline=600,
    carry_out=_lookup_carry_out,
    decides=_lookup_decides,
    query="text",
    pinned=lambda request: str(request["source"]),
    need="the knowledge source",
    named_need=_source,
    view=lambda action, result: search_view(f"asked {action.source} about", action.text, result, action.source),
)


PAGE_SCORE = 1.0
"""The score of each paragraph of an opened page: a title is it or isn't."""


class Open(Action, frozen=True, kw_only=True):
    """Find all paragraphs of exactly this title, in the order of their ids; an unknown title has none.

    corpus: the name of one of the run's corpora; the first one's without it.
    """

    title: str
    corpus: str = ""


def _open_carry_out(action: Open, engines: Engines) -> Retrieved:
    paragraphs = enumerate(engines.retriever(action.corpus).titled(action.title), start=1)
    return Retrieved(hits=tuple(Hit(paragraph=each, rank=rank, score=PAGE_SCORE) for rank, each in paragraphs))


def _open_decides(action: Open, binding: Binding) -> Json:
    _, revision = binding.corpus(action.corpus)
    return {"title": action.title, "corpus": revision}


OPEN: ActionKind[Any, Any] = replace(
    RETRIEVE,
    name="open",
    action=Open,
    carry_out=_open_carry_out,
    decides=_open_decides,
    request=lambda action: without_unused(action, "corpus"),
    query="title",
    view=lambda action, result: search_view("opened", action.title, result, action.corpus or None),
)
