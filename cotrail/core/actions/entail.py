"""Judging whether a sentence follows from a paragraph (natural language inference)."""

import msgspec
from msgspec import Struct

from cotrail.core.actions.kind import ActionKind, EngineNames, Engines
from cotrail.core.binding import MODEL, Binding
from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.encoders import ENTAILER
from cotrail.core.results import Entailed, Json
from cotrail.core.stored_parts import Stored
from cotrail.core.system import Action
from cotrail.core.views import Note, View, name_of


class Entail(Action, frozen=True, kw_only=True):
    """Judge whether a sentence follows from a paragraph, or contradicts it."""

    premise: Paragraph
    hypothesis: str


class _WrittenEntail(Struct, forbid_unknown_fields=True):
    """An `Entail` as it is stored: the premise by digest, among the paragraphs that requests refer to."""

    hypothesis: str
    paragraphs: tuple[str, ...]


def _request(action: Entail) -> Json:
    return {"hypothesis": action.hypothesis, "paragraphs": [action.premise.digest]}


def _read_back(request: Json, stored: Stored) -> Entail:
    record = msgspec.convert(request, _WrittenEntail)
    (premise,) = stored.referred(record.paragraphs)
    return Entail(premise=premise, hypothesis=record.hypothesis)


def _paragraphs(action: Entail) -> tuple[Paragraph, ...]:
    return (action.premise,)


def _carry_out(action: Entail, engines: Engines) -> Entailed:
    return engines.ask(ENTAILER, action)


def _decides(action: Entail, binding: Binding) -> Json:
    model = {"entailer": binding.entailer, "profile": binding.profile}
    return {"premise": action.premise.digest, "hypothesis": action.hypothesis, **model}


def _entailer(_: Entail, names: EngineNames) -> str:
    # An entailer that works by prompts asks the run's language model: it is that model's server which may be away.
    return f"the entailer {names.engine_name(ENTAILER.name)} beside the model {names.engine_name(MODEL)}"


def _view(action: Entail, result: Entailed | None) -> View:
    return View(asked=action.hypothesis, parts=() if result is None else (_judged(action, result),))


def _judged(action: Entail, result: Entailed) -> Note:
    shares = f"{result.entailment:.2f} entailed, {result.neutral:.2f} neutral, {result.contradiction:.2f} contradicted"
    return Note(text=f"{shares}  by {name_of(action.premise)}", digest=action.premise.digest)


def _fields(action: Entail, result: Entailed | None) -> Json:
    return {"sentences": (action.hypothesis,), "paragraphs": (action.premise.digest,), "found": result}


ENTAIL = ActionKind(
    name="entail",
    action=Entail,
    result=Entailed,
    role="evidence",
    carry_out=_carry_out,
    decides=_decides,
    request=_request,
    read_back=_read_back,
    paragraphs=_paragraphs,
    pinned="entailer",
    need="the model server",
    named_need=_entailer,
    view=_view,
    fields=_fields,
)
