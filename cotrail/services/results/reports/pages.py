"""HTML pages from templates; every value is escaped as text.

A page is one file that needs no network. Its content security policy allows no script but its own, by its digest.
"""

import base64
import hashlib
from functools import cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.humanize import percent
from cotrail.common.printable_text import cut, one_line, printable, visible
from cotrail.common.structs import shortened
from cotrail.core import views
from cotrail.services.results.reasoning import where
from cotrail.services.results.steps import ShownStep
from cotrail.services.results.verdicts import verdict_words

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment

SNIPPET = 190
"""Characters of a paragraph next to a sentence; each whole paragraph is at the end of the page, once."""


def anchor_of(digest: str) -> str:
    """The id of a paragraph on the page."""
    return f"p-{digest}"


_TEMPLATES = files("cotrail.services.results.reports").joinpath("templates")

SCRIPT = "page.js"
BRIEF_CHARACTERS = 200
"""Characters of a text in a list."""


def page(template: str, **values: Any) -> str:
    """A template of this package with the values filled in; raises where it uses one that isn't given."""
    return str(_environment().get_template(template).render(values))


def report_style() -> Traversable:
    """The style sheet of the reports, which the viewer's begins with."""
    return _TEMPLATES.joinpath("style.css")


def environment(*loaders: "BaseLoader") -> "Environment":
    """An environment of templates: those of the loaders, then those of this package."""
    # Imported here, as most commands write no page.
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=ChoiceLoader([*loaders, PackageLoader("cotrail.services.results.reports")]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_shown,
    )
    made.filters |= {
        "shortened": shortened,
        "breakable": _breakable,
        "brief": partial(cut, characters=BRIEF_CHARACTERS),
        "visible": visible,
        "where": where,
        "verdict": verdict_words,
        "percent": percent_on_page,
        "unbroken": unbroken,
    }
    made.globals |= {"percent": percent_on_page}
    return made


@cache
def _environment() -> "Environment":
    from markupsafe import Markup

    made = environment()
    script = _TEMPLATES.joinpath(SCRIPT).read_text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Not escaped: the script is a file of this package.
    made.globals |= {"frame": "page.html", "script": Markup(script), "script_digest": f"sha256-{digest}"}  # noqa: S704
    return made


def percent_on_page(value: float | None, digits: int = 1) -> str:
    """A share of 1 that isn't broken at the end of a line."""
    return unbroken(percent(value, digits))


def unbroken(text: str) -> str:
    """Words of cotrail's, in which no line ends before a percent sign."""
    return text.replace(" %", "\u00a0%")


def _breakable(text: str) -> Any:
    """A name that may be broken behind its slashes."""
    from markupsafe import Markup

    return Markup("/<wbr>").join(printable(text).split("/"))


def _shown(value: Any) -> Any:
    """Text without control characters, its writing directions isolated; markup stays as it is."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else printable(value)


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
    thoughts = next((part for part in view.parts if isinstance(part, views.Thoughts)), None)
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
        text="\n".join(part.text or part.blank for part in view.parts if isinstance(part, views.WrittenText)),
        found=tuple(_hit(hit) for hit in view.found if hit.new),
        note="\n".join(filter(None, (_facts(step, turn), *map(_line, view.parts), step.pending))),
    )


def _facts(step: ShownStep, turn: str) -> str:
    facts = [fact for part in step.view.parts if isinstance(part, views.Facts) for fact in part.facts]
    return ", ".join((*filter(None, (turn,)), *step.view.labels, *facts, *(step.words if facts else ())))


def _line(part: views.Part) -> str:
    """What the note under a step says of a part; empty where it stands above."""
    match part:
        case views.FoundParagraphs():
            others = "; ".join(one_line(views.name_of(hit.paragraph)) for hit in part.hits if not hit.new)
            left_out = f"found too, but there already or left out: {others}" if others else ""
            return left_out if part.hits else "nothing was found"
        case views.Note():
            return one_line(part.text)
        case views.ToolCalls():
            return "\n".join(f"called {one_line(call.name)} {one_line(call.arguments)}" for call in part.calls)
        case views.ScoredTexts():
            return "\n".join(f"{row.score:.2f}  {one_line(row.text)}" for row in part.rows)
        case views.Recorded():
            return _json(part.request) if part.result is None else f"{_json(part.request)}\n{_json(part.result)}"
    return ""


def _hit(hit: views.FoundParagraph) -> ReportedHit:
    return ReportedHit(
        title=views.name_of(hit.paragraph),
        snippet=cut(hit.paragraph.text, SNIPPET),
        anchor=anchor_of(hit.digest),
        rank=hit.rank,
        score=hit.scored,
        gold=hit.gold,
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
