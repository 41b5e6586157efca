"""How a run searches its corpora, where its system leaves that open: by which retriever, and what is reranked.

A run pins its way by the names here, so that it is sealed with everything else that decides results. The system knows
nothing of it: `searched` puts the way into the searches that the system yields, and a rating behind them.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.actions.embed import Rate
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.binding import FILTER, Binding
from cotrail.core.ports.retriever import numbered
from cotrail.core.questions import ListPlace
from cotrail.core.results import Failure, Rated, Result, Retrieved
from cotrail.core.system import Action, LimitReached, Part, Reply, StepFailed, System, Together, asking_by

RETRIEVER, RERANKED = "retriever", "reranked"
"""Names among what a run pins; the model that reranks is pinned by its role, `relevance_rater`."""

_WAYS = (
    "; one that was indexed with `--dense MODEL` is searched by bm25, dense, hybrid, or weights as bm25=0.3,dense=0.7, "
    "and one with `--late MODEL` by late in place of dense"
)
"""The retrievers, for errors."""

_WEIGHT = re.compile(r"([a-z0-9_-]{1,40})\s{0,9}=\s{0,9}([0-9]{1,9}(?:\.[0-9]{1,9})?)")
"""A list and its weight."""


class SearchWay(Struct, frozen=True, kw_only=True):
    """How searches are made.

    retriever: as in the corpus's own options, such as `hybrid`, or weights as `bm25=0.3,dense=0.7`; the corpus's own
    way where it is empty. reranked: how many of the best hits are reranked; 0 for none. filter: what the metadata of
    hits has to be, in Lucene's syntax, where `{NAME}` is the question's kind of that name; anything where it is empty.
    """

    retriever: str = ""
    reranked: int = 0
    filter: str = ""

    @property
    def options(self) -> dict[str, Any]:
        """The options that it adds to a search; raises ValueError for a retriever that can't be read."""
        way = {RETRIEVER: read_retriever(self.retriever)} if self.retriever else {}
        return way | ({FILTER: self.filter} if self.filter else {})

    @property
    def advice(self) -> str:
        """What an error of such a search ends with: the retrievers, where nothing but its retriever is at fault."""
        return _WAYS if self.retriever and not self.filter else ""

    @property
    def pins(self) -> dict[str, str]:
        """What a run pins of it."""
        pins = {RETRIEVER: self.retriever, RERANKED: str(self.reranked or ""), FILTER: self.filter}
        return {name: value for name, value in pins.items() if value}


def pinned_way(pins: Mapping[str, str]) -> SearchWay:
    """The way that a run pins."""
    return SearchWay(
        retriever=pins.get(RETRIEVER, ""), reranked=int(pins.get(RERANKED, 0)), filter=pins.get(FILTER, "")
    )


def read_retriever(text: str) -> str | dict[str, float]:
    """The retriever that a person names, or the weight of each list, as `bm25=0.3,dense=0.7`; raises ValueError."""
    if "=" not in text:
        return text
    parts = [_WEIGHT.fullmatch(part.strip()) for part in text.split(",")]
    weights = {part[1]: float(part[2]) for part in parts if part}
    if None in parts or len(weights) < len(parts) or not all(weights.values()):
        raise ValueError(f"`retriever` is {text!r}; give each list one weight above 0, as in `bm25=0.3,dense=0.7`")
    return weights


def in_the_way_of(binding: Binding, system: System) -> System:
    """The system, whose searches are made in the way that its run pins."""
    return searched(system, way) if (way := pinned_way(binding.pins)).pins else system


def searched(system: System, way: SearchWay) -> System:
    """The system, whose searches are made in this way; those of titles alone stay as they are, and so do opened pages.

    Where hits are reranked, a search finds so many, which a `rate` step scores; the system gets the best of them, as
    many as it asked for.
    """
    return asking_by(partial(_asked, way), system)


def _asked(way: SearchWay, asked: Action | Together) -> Part[Reply]:
    if isinstance(asked, Together):
        return (yield from _outcomes(asked.actions, way))
    return (yield from _outcomes((asked,), way))[0]


def _outcomes(actions: Sequence[Action], way: SearchWay) -> Part[tuple[Result, ...]]:
    try:
        found = yield from _all(tuple(_in_this_way(each, way) for each in actions))
    except LimitReached as reached:
        raise LimitReached(reached.limit, _cut(actions, reached.outcomes)) from None
    try:
        ended = yield from _reranked(actions, found, way)
    except LimitReached as reached:
        raise LimitReached(reached.limit, _cut(actions, found)) from None
    if failure := next((each for each in ended if isinstance(each, Failure)), None):
        raise StepFailed(failure, ended)
    return tuple(each for each in ended if isinstance(each, Result))


def _all(actions: tuple[Action, ...]) -> Part[tuple[Result | Failure, ...]]:
    try:
        reply = yield Together(actions) if len(actions) > 1 else actions[0]
    except StepFailed as failed:
        return failed.outcomes
    return reply if isinstance(reply, tuple) else (reply,)


def _in_this_way(action: Action, way: SearchWay) -> Action:
    if not _is_search(action):
        return action
    count = max(action.count, way.reranked) if _is_reranked(action, way) else action.count
    return replace(action, count=count, options=(way.options | (action.options or {})) or None)


def _is_search(action: Action) -> TypeGuard[Retrieve]:
    return isinstance(action, Retrieve) and action.field == "all"


def _is_reranked(action: Retrieve, way: SearchWay) -> bool:
    # The scope `after` filters the best so many of the system's own: more of them would be another search.
    return way.reranked > 0 and not (action.titles and action.scope == "after")


def _reranked(
    actions: Sequence[Action], found: tuple[Result | Failure, ...], way: SearchWay
) -> Part[tuple[Result | Failure, ...]]:
    """The outcomes, the hits of searches in the order of their ratings; a rating's failure is its search's."""
    places = [
        (place, action, each)
        for place, (action, each) in enumerate(zip(actions, found, strict=True))
        if _is_search(action) and _is_reranked(action, way) and isinstance(each, Retrieved) and each.hits
    ]
    if not places:
        return found
    best = ((action.query, each.paragraphs[: way.reranked]) for _, action, each in places)
    rates = (Rate(by="relevance", text=query, paragraphs=paragraphs) for query, paragraphs in best)
    ratings = yield from _all(tuple(rates))
    ended = list(found)
    for (place, action, each), rating in zip(places, ratings, strict=True):
        ended[place] = _best(each, rating, action.count) if isinstance(rating, Rated) else rating
    return tuple(ended)


def _best(found: Retrieved, rated: Rated, count: int) -> Retrieved:
    """The hits of the highest ratings, equal ones as they were found; each has its place in the search as well.

    Behind them are those that weren't rated, as they were found.
    """
    scored = sorted(zip(found.hits, rated.scores, strict=False), key=lambda pair: -pair[1])
    hits = [
        replace(hit, score=score, lists=(*hit.lists, ListPlace(list="found", rank=hit.rank, score=hit.score)))
        for hit, score in scored
    ]
    return Retrieved(hits=numbered([*hits, *found.hits[len(hits) :]][:count]))


def _cut(actions: Sequence[Action], outcomes: tuple[Result | Failure, ...]) -> tuple[Result | Failure, ...]:
    """The outcomes that were there before a limit, with as many hits as were asked for."""
    return tuple(
        Retrieved(hits=each.hits[: action.count]) if _is_search(action) and isinstance(each, Retrieved) else each
        for action, each in zip(actions, outcomes, strict=False)
    )
