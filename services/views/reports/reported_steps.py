"""Steps as a run's page shows them."""

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.printable_text import cut, one_line
from cotrail.core.views import (
    Facts,
    FoundParagraph,
    FoundParagraphs,
    Note,
    Part,
    Recorded,
    ScoredTexts,
    Thoughts,
    ToolCalls,
    WrittenText,
    name_of,
)
from cotrail.services.views.reports.paragraph_links import SNIPPET, anchor_of
from cotrail.services.views.shown_steps import ShownStep


class ReportedHit(Struct, frozen=True, kw_only=True):
    """A paragraph that a search added."""

    title: str
    snippet: str
    anchor: str
    rank: int
    score: str
    gold: bool


class ReportedStep(Struct, frozen=True, kw_only=True):
    """A step.

    asked: what it was about, such as a query; verb: what a search did with it; text: what came out of it.
    thoughts, thought: what a model thought before that, and what it is in words.
    """

    sequence: int
    kind: str
    verb: str = ""
    asked: str = ""
    text: str = ""
    thoughts: str = ""
    thought: str = ""
    found: tuple[ReportedHit, ...] = ()
    note: str = ""
    failed: bool = False


def reported_step(step: ShownStep, *, turn: str = "") -> ReportedStep:
    """The step; turn: what it is in a conversation, empty in others."""
    view = step.view
    thoughts = next((part for part in view.parts if isinstance(part, Thoughts)), None)
    common = ReportedStep(
        sequence=step.sequence,
        kind=step.kind,
        verb=view.verb,
        asked=view.asked,
        thoughts=thoughts.text if thoughts else "",
        thought=thoughts.words if thoughts else "",
    )
    if step.failure:
        return replace(common, text=f"{step.failure.type}: {step.failure.message}", failed=True)
    return replace(
        common,
        text="\n".join(part.text or part.blank for part in view.parts if isinstance(part, WrittenText)),
        found=tuple(_hit(hit) for hit in view.found if hit.new),
        note="\n".join(filter(None, (_facts(step, turn), *map(_line, view.parts), step.pending))),
    )


def _facts(step: ShownStep, turn: str) -> str:
    facts = [fact for part in step.view.parts if isinstance(part, Facts) for fact in part.facts]
    return ", ".join((*filter(None, (turn,)), *step.view.labels, *facts, *(step.words if facts else ())))


def _line(part: Part) -> str:
    """What the note under a step says of a part; empty where it stands above."""
    match part:
        case FoundParagraphs():
            others = "; ".join(one_line(name_of(hit.paragraph)) for hit in part.hits if not hit.new)
            left_out = f"found too, but there already or left out: {others}" if others else ""
            return left_out if part.hits else "nothing was found"
        case Note():
            return one_line(part.text)
        case ToolCalls():
            return "\n".join(f"called {one_line(call.name)} {one_line(call.arguments)}" for call in part.calls)
        case ScoredTexts():
            return "\n".join(f"{row.score:.2f}  {one_line(row.text)}" for row in part.rows)
        case Recorded():
            return _json(part.request) if part.result is None else f"{_json(part.request)}\n{_json(part.result)}"
    return ""


def _hit(hit: FoundParagraph) -> ReportedHit:
    return ReportedHit(
        title=name_of(hit.paragraph),
        snippet=cut(hit.paragraph.text, SNIPPET),
        anchor=anchor_of(hit.digest),
        rank=hit.rank,
        score=f"{hit.score:.1f}",
        gold=hit.gold,
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
