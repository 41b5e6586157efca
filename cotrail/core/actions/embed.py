"""Comparing sentences by embeddings."""

import msgspec
from msgspec import Struct

from cotrail.core.actions.kind import ActionKind, EngineNames, Engines
from cotrail.core.binding import Binding
from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.embedder import EMBEDDER
from cotrail.core.results import Embedded, Json
from cotrail.core.stored_parts import Stored
from cotrail.core.system import Action


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
    written = msgspec.convert(request, _WrittenEmbed)
    return Embed(sentences=written.sentences, paragraphs=stored.referred(written.paragraphs))


def _paragraphs(action: Embed) -> tuple[Paragraph, ...]:
    return action.paragraphs


def _carry_out(action: Embed, engines: Engines) -> Embedded:
    return engines.ask(EMBEDDER, action)


def _decides(action: Embed, binding: Binding) -> Json:
    model = {"embedder": binding.embedder, "profile": binding.profile}
    return {**_request(action), **model}


def _embedder(_: Embed, names: EngineNames) -> str:
    return f"the embedder {names.engine_name(EMBEDDER.name)}"


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
)
