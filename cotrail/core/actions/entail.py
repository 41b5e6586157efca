"""Reading a paragraph: whether a sentence follows from it, and what of it answers a question."""

from cotrail.core.actions.kind import ActionKind, EngineNames, Referring
from cotrail.core.binding import MODEL, Binding
from cotrail.core.ports.encoders import ENTAILER, EXTRACTOR
from cotrail.core.questions import Paragraph
from cotrail.core.results import Entailed, Extracted, Json
from cotrail.core.system import Action
from cotrail.core.views import Note, View, WrittenText, name_of


class Entail(Action, frozen=True, kw_only=True):
    """Judge whether a sentence follows from a paragraph, or contradicts it."""

    premise: Paragraph
    hypothesis: str


_STORED = Referring(Entail, "premise")


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
    carry_out=lambda action, engines: engines.ask(ENTAILER, action),
    decides=_decides,
    request=_STORED.request,
    read_back=_STORED.read_back,
    paragraphs=_STORED.paragraphs,
    pinned="entailer",
    need="the model server",
    named_need=_entailer,
    view=_view,
    fields=_fields,
)


class Extract(Action, frozen=True, kw_only=True):
    """Find the piece of a paragraph's text that answers a question, and how confident the reader is."""

    question: str
    paragraph: Paragraph


_STORED_EXTRACT = Referring(Extract, "paragraph")


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
    carry_out=lambda action, engines: engines.ask(EXTRACTOR, action),
    decides=_extract_decides,
    request=_STORED_EXTRACT.request,
    read_back=_STORED_EXTRACT.read_back,
    paragraphs=_STORED_EXTRACT.paragraphs,
    pinned=EXTRACTOR.name,
    need="the extractor",
    named_need=_extractor,
    view=_extract_view,
)
