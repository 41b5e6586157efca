"""Reading an answer out of a paragraph (extractive question answering)."""

import msgspec
from msgspec import Struct

from cotrail.core.actions.kind import ActionKind, EngineNames, Engines
from cotrail.core.binding import Binding
from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.encoders import EXTRACTOR
from cotrail.core.results import Extracted, Json
from cotrail.core.stored_parts import Stored
from cotrail.core.system import Action
from cotrail.core.views import Note, View, WrittenText, name_of


class Extract(Action, frozen=True, kw_only=True):
    """Find the piece of a paragraph's text that answers a question, and how confident the reader is."""

    question: str
    paragraph: Paragraph


class _WrittenExtract(Struct, forbid_unknown_fields=True):
    """An `Extract` as it is stored: the paragraph by digest, among those that requests refer to."""

    question: str
    paragraphs: tuple[str, ...]


def _request(action: Extract) -> Json:
    return {"question": action.question, "paragraphs": [action.paragraph.digest]}


def _read_back(request: Json, stored: Stored) -> Extract:
    record = msgspec.convert(request, _WrittenExtract)
    (paragraph,) = stored.referred(record.paragraphs)
    return Extract(question=record.question, paragraph=paragraph)


def _paragraphs(action: Extract) -> tuple[Paragraph, ...]:
    return (action.paragraph,)


def _carry_out(action: Extract, engines: Engines) -> Extracted:
    return engines.ask(EXTRACTOR, action)


def _decides(action: Extract, binding: Binding) -> Json:
    model = {"extractor": binding.engine(EXTRACTOR.name), "profile": binding.profile}
    return {"question": action.question, "paragraph": action.paragraph.digest, **model}


def _extractor(_: Extract, names: EngineNames) -> str:
    return f"the extractor {names.engine_name(EXTRACTOR.name)}"


def _view(action: Extract, result: Extracted | None) -> View:
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
    carry_out=_carry_out,
    decides=_decides,
    request=_request,
    read_back=_read_back,
    paragraphs=_paragraphs,
    pinned=EXTRACTOR.name,
    need="the extractor",
    named_need=_extractor,
    view=_view,
)
