"""Turns of a question by a text that stands in them."""

from collections.abc import Iterable, Iterator
from urllib.parse import quote

from cotrail.core.views import FoundParagraphs, Note, Part, ScoredTexts, Thoughts, ToolCalls, WrittenText
from cotrail.services.views.shown_steps import ShownStep
from cotrail.viewer.turns import Turn


def turns_with(text: str, turns: Iterable[Turn]) -> list[Turn]:
    """The turns in which the text stands, in whichever case: in what was asked for, written, thought, called, found."""
    sought = text.casefold()
    return [
        turn for turn in turns if any(sought in each.casefold() for step in turn.steps for each in _texts_of_step(step))
    ]


def text_fragment(text: str) -> str:
    """What stands behind the fragment of an address, so that the browser goes to the text and marks it."""
    return f":~:text={quote(text, safe='').replace('-', '%2D')}"


def _texts_of_step(step: ShownStep) -> Iterator[str]:
    yield step.view.asked
    for part in step.view.parts:
        yield from _texts_of_part(part)
    if step.failure:
        yield step.failure.message


def _texts_of_part(part: Part) -> Iterator[str]:
    match part:
        case WrittenText() | Thoughts() | Note():
            yield part.text
        case FoundParagraphs():
            yield from (text for hit in part.hits for text in (hit.paragraph.title, hit.paragraph.text))
        case ScoredTexts():
            yield from (row.text for row in part.rows)
        case ToolCalls():
            yield from (text for call in part.calls for text in (call.name, call.arguments))
