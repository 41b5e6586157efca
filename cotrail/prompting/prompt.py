"""The prompt of a step, as parts, and the template that joins them (IRCoT, section 3.1)."""

import hashlib
from enum import StrEnum
from functools import cached_property
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cotrail.paragraphs import Paragraph

GAP = "\n\n\n"
"""What stands between demonstrations."""


Drop = Literal["last", "first", "released"]
"""Which demonstrations go where not all fit: the `last` ones, so that all prompts of a run begin alike; the `first`
ones; or those that the `released` code of IRCoT drops for models with a fixed context: the last ones as it loads them,
with room to spare, and then the first ones. `cotrail.prompting.packing` does it."""


class AnswerForm(StrEnum):
    """What follows "A:" in a prompt."""

    COT = "cot"
    """A chain of thought that ends in "answer is: ..."."""

    DIRECT = "direct"
    """The answer alone."""

    TITLES = "titles"
    """The titles of the pages that are needed (IRCoT, appendix B)."""

    QUESTION = "question"
    """A question about a part of a sentence (Rethinking with Retrieval, appendix A.4)."""

    SPAN = "span"
    """The words of a paragraph that answer the question (the same)."""


class Demonstration(Struct, frozen=True, kw_only=True):
    """A solved question: its paragraphs (gold and distractors) and what stands behind "A:"."""

    id: str
    paragraphs: tuple[Paragraph, ...]
    question: str
    answer: str

    def render(self) -> str:
        """The demonstration as it stands in a prompt."""
        return _block(self.paragraphs, self.question, self.answer)


class Demonstrations(Struct, frozen=True, kw_only=True, dict=True):
    """The demonstrations of a run in one answer form, in the order of the prompt."""

    items: tuple[Demonstration, ...] = ()

    @cached_property
    def instruction(self) -> str:
        """What stands on lines before the question in every demonstration alike, as for Flan-T5; else empty."""
        instructions = {demonstration.question.rpartition("\n")[0] for demonstration in self.items}
        return instructions.pop() if len(instructions) == 1 else ""

    @cached_property
    def text(self) -> str:
        """What stands before the test question's own part: each demonstration and the gap behind it."""
        return "".join(d.render() + GAP for d in self.items)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the text."""
        return self.hash().hexdigest()

    @cached_property
    def _hashed(self) -> "hashlib._Hash":
        return hashlib.sha256(self.text.encode())

    def hash(self) -> "hashlib._Hash":
        """A SHA-256 that has already taken in the text, so that the long common part of prompts is hashed once."""
        return self._hashed.copy()


class Prompt(Struct, frozen=True, kw_only=True, dict=True):
    """Everything that a model is shown for one step.

    paragraphs: in the order collected, so that the prompts of a question share a long prefix.
    sentences: the chain of thought so far, which the model continues.
    max_paragraph_words: each paragraph is cut to so many space-separated words.
    drop: which demonstrations are left out where not all fit.
    first_demonstration: where the first of these demonstrations stood before `keep` left out others, from 0; it shows
        nowhere in the text.
    """

    demonstrations: Demonstrations
    paragraphs: tuple[Paragraph, ...] = ()
    question: str
    sentences: tuple[str, ...] = ()
    max_paragraph_words: int = 350
    drop: Drop = "last"
    first_demonstration: int = 0

    def render(self) -> str:
        """The text for the model: demonstrations, paragraphs, question, and the chain so far."""
        return self.demonstrations.text + self._test_block()

    def _test_block(self) -> str:
        shown = tuple(_cut(p, self.max_paragraph_words) for p in self.paragraphs)
        return _block(shown, self.question, " ".join(self.sentences)).rstrip()

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the rendered prompt."""
        hashed = self.demonstrations.hash()
        hashed.update(self._test_block().encode())
        return hashed.hexdigest()

    def keep(self, demonstrations: int, paragraphs: int, first: int = 0) -> "Prompt":
        """The same prompt with so many demonstrations only, from number `first` on, and its first paragraphs."""
        kept = self.demonstrations.items[first : first + demonstrations]
        return replace(
            self,
            demonstrations=Demonstrations(items=kept),
            paragraphs=self.paragraphs[:paragraphs],
            first_demonstration=self.first_demonstration + first if kept else 0,
        )


def _cut(paragraph: Paragraph, words: int) -> Paragraph:
    text = paragraph.text
    if text.count(" ") >= words:
        text = " ".join(text.split(" ")[:words])
    shown = text.strip()
    return paragraph if shown == paragraph.text else replace(paragraph, text=shown)


def _block(paragraphs: tuple[Paragraph, ...], question: str, answer: str) -> str:
    context = [f"Wikipedia Title: {p.title}\n{p.text}" if p.title else p.text for p in paragraphs]
    return "\n\n".join([*context, f"Q: {question}\nA: {answer}"])
