"""A kind of action: counting the words of a text."""

from cotrail.core.actions.kind import Action, ActionKind, Engines
from cotrail.core.binding import Binding
from cotrail.core.results import Json, Result


class Count(Action, frozen=True, kw_only=True):
    """Count the words of a text."""

    text: str


class Counted(Result, frozen=True, kw_only=True):
    """A number of words."""

    words: int


def _carry_out(action: Count, _: Engines) -> Counted:
    return Counted(words=len(action.text.split()))


def _decides(action: Count, _: Binding) -> Json:
    return {"text": action.text}


COUNT = ActionKind(name="count", action=Count, result=Counted, role="retrieval", carry_out=_carry_out, decides=_decides)
