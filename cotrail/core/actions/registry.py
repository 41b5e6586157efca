"""Registry of the kinds of actions: a line a kind."""

import hashlib
from typing import Any, cast

from cotrail.common.structs import canonical
from cotrail.core.actions.embed import EMBED, RATE
from cotrail.core.actions.entail import ENTAIL, EXTRACT
from cotrail.core.actions.generate import JUDGE, READ, REASON, Prompted, generation_view
from cotrail.core.actions.kind import ActionKind, Role, UnreadAction
from cotrail.core.actions.retrieve import LOOKUP, OPEN, RETRIEVE
from cotrail.core.binding import Binding
from cotrail.core.results import Generated, Json, Result, Retrieved
from cotrail.core.system import Action
from cotrail.core.views import Recorded, View, search_view

_RECORDS: tuple[ActionKind[Any, Any], ...] = (RETRIEVE, REASON, READ, LOOKUP, EMBED, ENTAIL, EXTRACT, RATE, OPEN, JUDGE)

KINDS: dict[str, ActionKind[Any, Any]] = {record.name: record for record in _RECORDS}
"""Every kind of action by its name in queues, tasks and tables."""


def kind_of(action: Action) -> ActionKind[Any, Any]:
    """The kind of an action; raises TypeError where it isn't in `KINDS`."""
    for kind in KINDS.values():
        if kind.action is type(action):
            return kind
    raise TypeError(f"{action!r} is of no known kind")


def fingerprint(action: Action, binding: Binding) -> str:
    """The SHA-256 over everything that decides the action's result.

    It covers the kind, the query or the rendered prompt, the models, the sampling and the revisions of what is
    searched; not timeouts, addresses, keys and retry counts, which may change while a run is under way.
    """
    kind = kind_of(action)
    return hashlib.sha256(canonical({"kind": kind.name, **kind.decides(action, binding)})).hexdigest()


def carried_out_by(role: Role) -> tuple[str, ...]:
    """Names of the kinds that the workers of a role carry out."""
    return tuple(name for name, kind in KINDS.items() if kind.role == role)


def finds_paragraphs(name: str | None) -> bool:
    """Return whether steps of this kind find paragraphs; False for a kind that this version doesn't know."""
    kind = KINDS.get(name or "")
    return kind is not None and kind.finds_paragraphs


def has_prompt(name: str | None) -> bool:
    """Return whether steps of this kind have a prompt; False for a kind that this version doesn't know."""
    kind = KINDS.get(name or "")
    return kind is not None and issubclass(kind.action, Prompted)


def view_of(action: Action, result: Result | None) -> View:
    """What there is to show of a step.

    Of a kind without a view, the paragraphs that it found, the text that it wrote, or request and result as recorded.
    """
    kind = None if isinstance(action, UnreadAction) else kind_of(action)
    if kind and kind.view:
        return kind.view(action, result)
    if kind and kind.query:
        return search_view(
            "searched for",
            getattr(action, kind.query),
            cast("Retrieved | None", result),
            getattr(action, "corpus", "") or None,
        )
    if isinstance(action, Prompted):
        return generation_view("thought", action, cast("Generated | None", result))
    return View(parts=(Recorded(**_recorded(action, result)),))


def fields_of(action: Action, result: Result | None) -> Json:
    """What the JSON of a trace holds of a step that finds no paragraphs; see `ActionKind.fields`."""
    if isinstance(action, Prompted):
        return {"sample": action.sample, "paragraphs": len(action.prompt.paragraphs), "generated": result}
    fields = None if isinstance(action, UnreadAction) else kind_of(action).fields
    return (fields or _recorded)(action, result)


def _recorded(action: Action, result: Result | None) -> Json:
    request = action.request if isinstance(action, UnreadAction) else kind_of(action).request(action)
    return {"request": request, "result": None if result is None else result.recorded()}
