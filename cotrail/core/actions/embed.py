"""Comparing sentences: by embeddings, and by a cross-encoder's rating."""

from operator import itemgetter

import msgspec
from msgspec import Struct

from cotrail.common.humanize import count
from cotrail.core.actions.kind import ActionKind, EngineNames, Engines
from cotrail.core.binding import Binding
from cotrail.core.demonstrations import Stored
from cotrail.core.ports.encoders import EMBEDDER, RATERS, By
from cotrail.core.questions import Paragraph
from cotrail.core.results import Embedded, Json, Rated
from cotrail.core.system import Action
from cotrail.core.views import Note, ScoredText, ScoredTexts, View, name_of


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


# Scoring a text against others, by whether they ask the same or by how far they answer it.


class Rate(Action, frozen=True, kw_only=True):
    """Score a text against each of the others and each paragraph.

    by: `duplicate` asks whether two questions are the same, `relevance` how far the others answer the text.
    """

    by: By
    text: str
    others: tuple[str, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()


class _WrittenRate(Struct, forbid_unknown_fields=True):
    """A `Rate` as it is stored: its paragraphs by digest."""

    by: By
    text: str
    others: tuple[str, ...]
    paragraphs: tuple[str, ...]


def _rate_request(action: Rate) -> Json:
    pair = {"by": action.by, "text": action.text, "others": action.others}
    return {**pair, "paragraphs": [paragraph.digest for paragraph in action.paragraphs]}


def _rate_read_back(request: Json, stored: Stored) -> Rate:
    record = msgspec.convert(request, _WrittenRate)
    paragraphs = stored.referred(record.paragraphs)
    return Rate(by=record.by, text=record.text, others=record.others, paragraphs=paragraphs)


def _rate_paragraphs(action: Rate) -> tuple[Paragraph, ...]:
    return action.paragraphs


def _rate_carry_out(action: Rate, engines: Engines) -> Rated:
    return engines.ask(RATERS[action.by], action)


def _rate_decides(action: Rate, binding: Binding) -> Json:
    model = {"rater": binding.engine(RATERS[action.by].name), "profile": binding.profile}
    return {**_rate_request(action), **model}


def _rater(action: Rate, names: EngineNames) -> str:
    return f"the rater {names.engine_name(RATERS[action.by].name)}"


def _rate_view(action: Rate, result: Rated | None) -> View:
    return View(asked=action.text, labels=(action.by,), parts=() if result is None else (_scores(action, result),))


def _scores(action: Rate, result: Rated) -> ScoredTexts:
    names = [*((other, "") for other in action.others), *((name_of(each), each.digest) for each in action.paragraphs)]
    rows = (
        ScoredText(score=score, text=text, digest=digest)
        for score, (text, digest) in zip(result.scores, names, strict=True)
    )
    return ScoredTexts(rows=tuple(rows))


RATE = ActionKind(
    name="rate",
    action=Rate,
    result=Rated,
    role="evidence",
    deadline=1800,
    carry_out=_rate_carry_out,
    decides=_rate_decides,
    request=_rate_request,
    read_back=_rate_read_back,
    paragraphs=_rate_paragraphs,
    pinned=lambda request: RATERS[request["by"]].name,
    need="the rater",
    named_need=_rater,
    view=_rate_view,
)
