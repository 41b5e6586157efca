"""Comparing sentences by embeddings."""

from operator import itemgetter

import msgspec
from msgspec import Struct

from cotrail.common.humanize import count
from cotrail.core.actions.kind import ActionKind, EngineNames, Engines
from cotrail.core.binding import Binding
from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.encoders import EMBEDDER
from cotrail.core.results import Embedded, Json
from cotrail.core.stored_parts import Stored
from cotrail.core.system import Action
from cotrail.core.views import Note, View, name_of


class Embed(Action, frozen=True, kw_only=True):
    """Compare sentences with paragraphs or, without paragraphs, with one another."""

    sentences: tuple[str, ...]
    paragraphs: tuple[Paragraph, ...] = ()


class _WrittenEmbed(Struct, forbid_unknown_fields=True):
    """An `Embed` as it is stored: its paragraphs by digest."""

    sentences: tuple[str, ...]
    paragraphs: tuple[str, ...]


def _request(action: Embed) -> Json:
    return {"sentences": action.sentences, "paragraphs": [paragraph.digest for paragraph in action.paragraphs]}


def _read_back(request: Json, stored: Stored) -> Embed:
    record = msgspec.convert(request, _WrittenEmbed)
    return Embed(sentences=record.sentences, paragraphs=stored.referred(record.paragraphs))


def _paragraphs(action: Embed) -> tuple[Paragraph, ...]:
    return action.paragraphs


def _carry_out(action: Embed, engines: Engines) -> Embedded:
    return engines.ask(EMBEDDER, action)


def _decides(action: Embed, binding: Binding) -> Json:
    model = {"embedder": binding.embedder, "profile": binding.profile}
    return {**_request(action), **model}


def _embedder(_: Embed, names: EngineNames) -> str:
    return f"the embedder {names.engine_name(EMBEDDER.name)}"


def _view(action: Embed, result: Embedded | None) -> View:
    sentence = action.sentences[0] if len(action.sentences) == 1 else ""
    return View(asked=sentence, parts=() if result is None else (_nearest(action, result),))


def _nearest(action: Embed, result: Embedded) -> Note:
    if not action.paragraphs:
        return Note(text=f"{count(len(action.sentences), 'sentence')} with one another")
    similarity, nearest = max(zip(result.similarities[0], action.paragraphs, strict=True), key=itemgetter(0))
    words = f"{similarity:.2f} like {name_of(nearest)}, the nearest of {len(action.paragraphs)}"
    return Note(text=words, digest=nearest.digest)


def _fields(action: Embed, result: Embedded | None) -> Json:
    return {**_request(action), "found": result}


EMBED = ActionKind(
    name="embed",
    action=Embed,
    result=Embedded,
    role="evidence",
    deadline=1800,
    carry_out=_carry_out,
    decides=_decides,
    request=_request,
    read_back=_read_back,
    paragraphs=_paragraphs,
    pinned="embedder",
    need="the embedder",
    named_need=_embedder,
    view=_view,
    fields=_fields,
)
