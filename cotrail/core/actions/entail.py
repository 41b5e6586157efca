"""Reading a paragraph: whether a sentence follows from it, and what of it answers a question."""

import msgspec
from msgspec import Struct

from cotrail.core.actions.kind import ActionKind, EngineNames, Engines
from cotrail.core.binding import MODEL, Binding
from cotrail.core.demonstrations import Stored
from cotrail.core.ports.encoders import ENTAILER, EXTRACTOR
from cotrail.core.questions import Paragraph
from cotrail.core.results import Entailed, Extracted, Json
from cotrail.core.system import Action
from cotrail.core.views import Note, View, WrittenText, name_of


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
    return f"the entailer {names.engine_name(ENTAILER.name)} along with the model {names.engine_name(MODEL)}"


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


# Reading an answer out of a paragraph (extractive question answering).


class Extract(Action, frozen=True, kw_only=True):
    """Find the piece of a paragraph's text that answers a question, and how confident the reader is."""

    question: str
    paragraph: Paragraph


class _WrittenExtract(Struct, forbid_unknown_fields=True):
    """An `Extract` as it is stored: the paragraph by digest, among those that requests refer to."""

    question: str
    paragraphs: tuple[str, ...]


def _extract_request(action: Extract) -> Json:
    return {"question": action.question, "paragraphs": [action.paragraph.digest]}


def _extract_read_back(request: Json, stored: Stored) -> Extract:
    record = msgspec.convert(request, _WrittenExtract)
    (paragraph,) = stored.referred(record.paragraphs)
    return Extract(question=record.question, paragraph=paragraph)


def _extract_paragraphs(action: Extract) -> tuple[Paragraph, ...]:
    return (action.paragraph,)


def _extract_carry_out(action: Extract, engines: Engines) -> Extracted:
    return engines.ask(EXTRACTOR, action)


def _extract_decides(action: Extract, binding: Binding) -> Json:
    model = {"extractor": binding.engine(EXTRACTOR.name), "profile": binding.profile}
    return {"question": action.question, "paragraph": action.paragraph.digest, **model}


def _extractor(_: Extract, names: EngineNames) -> str:
    return f"the extractor {names.engine_name(EXTRACTOR.name)}"


def _extract_view(action: Extract, result: Extracted | None) -> View:
    if result is None:
        return View(asked=action.question)
    source = Note(
        text=f"confidence {result.confidence:.2f}, in {name_of(action.paragraph)}", digest=action.paragraph.digest
    )
    return View(asked=action.question, parts=(WrittenText(text=result.text, blank="no answer"), source))


EXTRACT = ActionKind(
    name="extract",
    action=Extract,
    result=Extracted,
    role="evidence",
    deadline=1800,
    carry_out=_extract_carry_out,
    decides=_extract_decides,
    request=_extract_request,
    read_back=_extract_read_back,
    paragraphs=_extract_paragraphs,
    pinned=EXTRACTOR.name,
    need="the extractor",
    named_need=_extractor,
    view=_extract_view,
)
