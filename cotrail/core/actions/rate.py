"""Scoring a text against others, by whether they ask the same or by how far they answer it."""

import msgspec
from msgspec import Struct

from cotrail.core.actions.kind import ActionKind, EngineNames, Engines
from cotrail.core.binding import Binding
from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.encoders import RATERS, By
from cotrail.core.results import Json, Rated
from cotrail.core.stored_parts import Stored
from cotrail.core.system import Action
from cotrail.core.views import ScoredText, ScoredTexts, View, name_of


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


def _request(action: Rate) -> Json:
    pair = {"by": action.by, "text": action.text, "others": action.others}
    return {**pair, "paragraphs": [paragraph.digest for paragraph in action.paragraphs]}


def _read_back(request: Json, stored: Stored) -> Rate:
    record = msgspec.convert(request, _WrittenRate)
    paragraphs = stored.referred(record.paragraphs)
    return Rate(by=record.by, text=record.text, others=record.others, paragraphs=paragraphs)


def _paragraphs(action: Rate) -> tuple[Paragraph, ...]:
    return action.paragraphs


def _carry_out(action: Rate, engines: Engines) -> Rated:
    return engines.ask(RATERS[action.by], action)


def _decides(action: Rate, binding: Binding) -> Json:
    model = {"rater": binding.engine(RATERS[action.by].name), "profile": binding.profile}
    return {**_request(action), **model}


def _rater(action: Rate, names: EngineNames) -> str:
    return f"the rater {names.engine_name(RATERS[action.by].name)}"


def _view(action: Rate, result: Rated | None) -> View:
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
    carry_out=_carry_out,
    decides=_decides,
    request=_request,
    read_back=_read_back,
    paragraphs=_paragraphs,
    pinned=lambda request: RATERS[request["by"]].name,
    need="the rater",
    named_need=_rater,
    view=_view,
)
