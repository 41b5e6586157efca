"""Searching a corpus."""

from cotrail.common.unusual_fields import unusual
from cotrail.core.actions.kind import Action, ActionKind, EngineNames, Engines
from cotrail.core.binding import Binding
from cotrail.core.ports.retriever import Field, Retriever, Scope
from cotrail.core.results import Json, Retrieved


class Retrieve(Action, frozen=True, kw_only=True):
    """Find the best `count` paragraphs for a query, of any page or only of the titles given.

    distinct: whether paragraphs of the same text count as one; see `cotrail.core.ports.retriever`.
    """

    query: str
    count: int
    titles: tuple[str, ...] = ()
    scope: Scope = "only"
    field: Field = "all"
    distinct: bool = False


def retrieved(retriever: Retriever, action: Retrieve) -> Retrieved:
    """The result of a search; raises what `Retriever.search` does."""
    return Retrieved(
        hits=retriever.search(
            action.query,
            action.count,
            action.titles,
            scope=action.scope,
            field=action.field,
            distinct=action.distinct,
        )
    )


def _carry_out(action: Retrieve, engines: Engines) -> Retrieved:
    return retrieved(engines.retriever(), action)


def _decides(action: Retrieve, binding: Binding) -> Json:
    searched = {"query": action.query, "count": action.count, "titles": action.titles, "corpus": binding.corpus}
    return searched | unusual(action, "scope", "field", "distinct")


def _corpus(_: Retrieve, names: EngineNames) -> str:
    return f"the corpus {names.corpus}"


RETRIEVE = ActionKind(
    name="retrieve",
    action=Retrieve,
    result=Retrieved,
    role="retrieval",
    deadline=600,
    carry_out=_carry_out,
    decides=_decides,
    query="query",
    pinned="corpus_revision",
    need="the search server",
    named_need=_corpus,
)
