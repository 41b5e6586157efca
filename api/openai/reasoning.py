"""What a system did on the way to its answer, as the reasoning of a model."""

from collections.abc import Iterator
from typing import Any

from cotrail.services.views.ask_events import Answer, AskEvent, StepEnded, Token
from cotrail.services.views.shown_steps import ShownStep

SOURCE = "urn:cotrail:paragraph:"
"""What precedes a paragraph's id in the address of a source that has no other."""


class Reasoning:
    """The text of the reasoning, as it grows.

    A search is a line with what it found; what models think and write stands there as it is written. Each step ends
    with a line break.
    """

    def __init__(self) -> None:
        self.text = ""
        self._told: dict[int, str] = {}

    def take(self, event: AskEvent | None) -> str:
        """What an event adds to it."""
        piece = ""
        match event:
            case Token():
                # Steps may write side by side; only one of them is told as it writes, so that texts don't mix.
                if not self._told or event.step in self._told:
                    self._told[event.step] = self._told.get(event.step, "") + event.text
                    piece = event.text
            case StepEnded():
                piece = self._rest_of(event.step)
        self.text += piece
        return piece

    def _rest_of(self, step: ShownStep) -> str:
        told, whole = self._told.pop(step.sequence, ""), words_of(step)
        if not told:
            return f"{whole}\n" if whole else ""
        return f"{whole[len(told) :]}\n" if whole.startswith(told) else "\n"


def words_of(step: ShownStep) -> str:
    """What a step did, in words: its thoughts and its text, or what it found."""
    return "\n".join(_words(step))


def _words(step: ShownStep) -> Iterator[str]:
    if titles := [hit.paragraph.title for hit in step.view.found]:
        yield f"{step.kind} “{step.view.asked}”: {'; '.join(titles)}"
    for part in step.view.parts:
        text = getattr(part, "text", "")
        if text and part.__struct_config__.tag in ("thoughts", "text"):
            yield text


def citations(answer: Answer) -> list[dict[str, Any]]:
    """The paragraphs that a question collected; they stand behind the whole answer, and not behind a part of it."""
    end = len(answer.answer or "")
    return [
        {
            "start_index": 0,
            "end_index": end,
            "title": source.title,
            "url": source.id if source.id.startswith(("http://", "https://")) else f"{SOURCE}{source.id}",
            "paragraph_id": source.id,
            "text": source.text,
        }
        for source in answer.sources
    ]
