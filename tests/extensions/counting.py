"""Kinds of actions: counting the words of a text, with a view, and translating it by an engine of the run."""

from cotrail.core.actions.kind import ActionKind, Engines
from cotrail.core.binding import Binding
from cotrail.core.results import Json, Result
from cotrail.core.system import Action
from cotrail.core.views import Note, View

from .translating import TRANSLATOR


class Count(Action, frozen=True, kw_only=True):
    """Count the words of a text."""

    text: str


class Counted(Result, frozen=True, kw_only=True):
    """A number of words."""

    words: int


def _view(action: Count, result: Counted | None) -> View:
    parts = () if result is None else (Note(text=f"{result.words} words, no more"),)
    return View(asked=action.text, verb="counted the words of", parts=parts)


COUNT = ActionKind(
    name="count",
    action=Count,
    result=Counted,
    role="retrieval",
    carry_out=lambda action, _: Counted(words=len(action.text.split())),
    decides=lambda action, _: {"text": action.text},
    view=_view,
)


class Translate(Action, frozen=True, kw_only=True):
    """Translate a text."""

    text: str


class Translated(Result, frozen=True, kw_only=True):
    """A text in another language."""

    text: str


def _translate(action: Translate, engines: Engines) -> Translated:
    return Translated(text=engines.ask(TRANSLATOR, action.text))


def _decides(action: Translate, binding: Binding) -> Json:
    return {"text": action.text, "translator": binding.engine(TRANSLATOR.name)}


TRANSLATE = ActionKind(
    name="translate",
    action=Translate,
    result=Translated,
    role="retrieval",
    carry_out=_translate,
    decides=_decides,
    pinned=TRANSLATOR.name,
)
