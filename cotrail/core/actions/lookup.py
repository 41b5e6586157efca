"""Asking a knowledge source."""

from cotrail.core.actions.kind import ActionKind, EngineNames, Engines
from cotrail.core.binding import Binding
from cotrail.core.ports.retriever import Source
from cotrail.core.results import Json, Retrieved
from cotrail.core.system import Action
from cotrail.core.views import search_view


class Lookup(Action, frozen=True, kw_only=True):
    """Ask a knowledge source about a text; it returns sentences.

    other: a second text, for sources that connect the words of two.
    """

    source: Source
    text: str
    other: str = ""


def _carry_out(action: Lookup, engines: Engines) -> Retrieved:
    return Retrieved(hits=engines.knowledge(action.source).lookup(action.text, action.other))


def _decides(action: Lookup, binding: Binding) -> Json:
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
    carry_out=_carry_out,
    decides=_decides,
    query="text",
    pinned=lambda request: str(request["source"]),
    need="the knowledge source",
    named_need=_source,
    view=lambda action, result: search_view(f"asked {action.source} about", action.text, result, action.source),
)
