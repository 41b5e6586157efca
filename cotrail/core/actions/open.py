"""Opening a page of a corpus by its title."""

from cotrail.common.structs import without_unused
from cotrail.core.actions.kind import ActionKind, EngineNames, Engines
from cotrail.core.binding import FURTHER_CORPUS, Binding
from cotrail.core.paragraphs import Hit
from cotrail.core.results import Json, Retrieved
from cotrail.core.system import Action
from cotrail.core.views import search_view

PAGE_SCORE = 1.0
"""The score of each paragraph of an opened page: a title is it or isn't."""


class Open(Action, frozen=True, kw_only=True):
    """Find all paragraphs of exactly this title, in the order of their ids; an unknown title has none.

    corpus: the name of one of the run's corpora; the first one's without it.
    """

    title: str
    corpus: str = ""


def _carry_out(action: Open, engines: Engines) -> Retrieved:
    paragraphs = enumerate(engines.retriever(action.corpus).titled(action.title), start=1)
    return Retrieved(hits=tuple(Hit(paragraph=each, rank=rank, score=PAGE_SCORE) for rank, each in paragraphs))


def _decides(action: Open, binding: Binding) -> Json:
    _, revision = binding.corpus(action.corpus)
    return {"title": action.title, "corpus": revision}


def _corpus(action: Open, names: EngineNames) -> str:
    return f"the corpus {names.binding.corpus(action.corpus)[0]}"


OPEN = ActionKind(
    name="open",
    action=Open,
    result=Retrieved,
    role="retrieval",
    deadline=600,
    carry_out=_carry_out,
    decides=_decides,
    request=lambda action: without_unused(action, "corpus"),
    query="title",
    pinned=lambda request: FURTHER_CORPUS + request.get("corpus", ""),
    need="the search server",
    named_need=_corpus,
    view=lambda action, result: search_view("opened", action.title, result, action.corpus or None),
)
