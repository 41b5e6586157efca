"""Searching a corpus."""

from cotrail.core.actions.kind import Action
from cotrail.core.ports.retriever import Field, Retriever, Scope
from cotrail.core.results import Retrieved


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
    """The result of a search as an action asks for it; raises what `Retriever.search` does."""
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
