"""Prompt settings, and the passages and instructions that stand in the prompts of all systems."""

from typing import Literal

from msgspec import Struct

from cotrail.core.demonstrations import Drop
from cotrail.core.paragraphs import Paragraph, passage_of
from cotrail.core.questions import GoldParagraph, Question


class PromptSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Composition of prompts."""

    drop: Drop = "last"
    """Which demonstrations are left out where not all fit: the `last` ones, the `first` ones, or as in the
    `released` code."""

    pinned: Literal["top", "bottom"] = "top"
    """Whether the passage that a question pins is at the `top` of its paragraphs or at the `bottom`."""


def shown(question: Question, collected: tuple[Paragraph, ...]) -> tuple[Paragraph, ...]:
    """The paragraphs of a prompt: the passage that the question pins, then those collected."""
    pinned = pinned_paragraph(question)
    return collected if pinned is None or pinned in collected else (pinned, *collected)


def pinned_is_last(question: Question, prompting: PromptSettings) -> bool:
    """Return whether the first of the paragraphs is a pinned passage that prompts show after the others."""
    return question.pinned is not None and prompting.pinned == "bottom"


def pinned_paragraph(question: Question) -> Paragraph | None:
    """The passage that the question pins, as a paragraph."""
    return None if question.pinned is None else brought(question.pinned)


def brought(passage: GoldParagraph) -> Paragraph:
    """A passage that a question brings along, as a paragraph."""
    return passage_of(passage.text, passage.title)


def instructed(question: str, instruction: str) -> str:
    """A question with the instruction that the demonstrations' questions have, on lines before it."""
    return f"{instruction}\n{question}" if instruction else question
