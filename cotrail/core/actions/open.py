"""Opening a page of a corpus by its title."""

from cotrail.core.actions.kind import Action, ActionKind, EngineNames, Engines
from cotrail.core.binding import Binding
from cotrail.core.paragraphs import Hit
from cotrail.core.results import Json, Retrieved
from cotrail.core.views import search_view

SCORE = 1.0
"""The score of each paragraph of an opened page: a title is it or isn't."""


class Open(Action, frozen=True, kw_only=True):
    """Find all paragraphs of exactly this title, in the order of their ids; an unknown title has none."""

    title: str


def _carry_out(action: Open, engines: Engines) -> Retrieved:
    paragraphs = enumerate(engines.retriever().titled(action.title), start=1)
    return Retrieved(hits=tuple(Hit(paragraph=each, rank=rank, score=SCORE) for rank, each in paragraphs))


def _decides(action: Open, binding: Binding) -> Json:
    return {"title": action.title, "corpus": binding.corpus}


def _corpus(_: Open, names: EngineNames) -> str:
    return f"the corpus {names.corpus}"


OPEN = ActionKind(
    name="open",
    action=Open,
    result=Retrieved,
    role="retrieval",
    deadline=600,
    carry_out=_carry_out,
    decides=_decides,
    query="title",
    pinned="corpus_revision",
    need="the search server",
    named_need=_corpus,
    view=lambda action, result: search_view("opened", action.title, result),
)
