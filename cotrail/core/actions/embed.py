"""Comparing sentences: by embeddings, and by a cross-encoder's rating."""

from operator import itemgetter

from cotrail.common.humanize import count
from cotrail.core.actions.kind import ActionKind, EngineNames, Referring
from cotrail.core.binding import Binding
from cotrail.core.ports.encoders import EMBEDDER, RATERS, By
from cotrail.core.questions import Paragraph
from cotrail.core.results import Embedded, Json, Rated
from cotrail.core.system import Action
from cotrail.core.views import Note, ScoredText, ScoredTexts, View, name_of


class Embed(Action, frozen=True, kw_only=True):
    """Compare sentences with paragraphs, or with one another where there are none; without sentences, embed these."""

    sentences: tuple[str, ...]
    paragraphs: tuple[Paragraph, ...] = ()


_STORED = Referring(Embed)


def _decides(action: Embed, binding: Binding) -> Json:
    model = {"embedder": binding.embedder, "profile": binding.profile}
    return {**_STORED.request(action), **model}


def _embedder(_: Embed, names: EngineNames) -> str:
    return f"the embedder {names.engine_name(EMBEDDER.name)}"


def _view(action: Embed, result: Embedded | None) -> View:
    sentence = action.sentences[0] if len(action.sentences) == 1 else ""
    return View(asked=sentence, parts=() if result is None else (_nearest(action, result),))


def _nearest(action: Embed, result: Embedded) -> Note:
    if not action.sentences:
        return Note(text=f"{count(len(action.paragraphs), 'paragraph')} embedded")
    if not action.paragraphs:
        return Note(text=f"{count(len(action.sentences), 'sentence')} with one another")
    similarity, nearest = max(zip(result.similarities[0], action.paragraphs, strict=True), key=itemgetter(0))
    words = f"{similarity:.2f} like {name_of(nearest)}, the nearest of {len(action.paragraphs)}"
    return Note(text=words, digest=nearest.digest)


def _fields(action: Embed, result: Embedded | None) -> Json:
    return {**_STORED.request(action), "found": result}


EMBED = ActionKind(
    name="embed",
    action=Embed,
    result=Embedded,
    role="evidence",
    deadline=1800,
    carry_out=lambda action, engines: engines.ask(EMBEDDER, action),
    decides=_decides,
    request=_STORED.request,
    read_back=_STORED.read_back,
    paragraphs=_STORED.paragraphs,
    pinned="embedder",
    need="the embedder",
    named_need=_embedder,
    view=_view,
    fields=_fields,
)


class Rate(Action, frozen=True, kw_only=True):
    """Score a text against each of the others and each paragraph.

    by: `duplicate` asks whether two questions are the same, `relevance` how far the others answer the text.
    """

    by: By
    text: str
    others: tuple[str, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()


_STORED_RATE = Referring(Rate)


def _rate_decides(action: Rate, binding: Binding) -> Json:
    model = {"rater": binding.engine(RATERS[action.by].name), "profile": binding.profile}
    return {**_STORED_RATE.request(action), **model}


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
    carry_out=lambda action, engines: engines.ask(RATERS[action.by], action),
    decides=_rate_decides,
    request=_STORED_RATE.request,
    read_back=_STORED_RATE.read_back,
    paragraphs=_STORED_RATE.paragraphs,
    pinned=lambda request: RATERS[request["by"]].name,
    need="the rater",
    named_need=_rater,
    view=_rate_view,
)
