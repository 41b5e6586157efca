"""The prompt of a step, as parts, and the template that joins them (IRCoT, section 3.1)."""

import hashlib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.paragraphs import Paragraph

Drop = Literal["last", "first", "released"]
"""Which demonstrations go where not all fit: the `last` ones, so that all prompts of a run begin alike; the `first`
ones; or those that the `released` code of IRCoT drops for models with a fixed context: the last ones as it loads them,
with room to spare, and then the first ones. `cotrail.engines.language_models.packing` does it."""

Layout = Literal["ircot", "qa", "entailment", "unifiedqa"]
"""`ircot`: titled paragraphs, "Q:" and "A:", as in the released prompts of IRCoT. `qa`: the same with one blank line
between demonstrations, as in Rethinking with Retrieval (table 6). `entailment`: a premise, and right below it a
"Question:" about a hypothesis and its "Answer:" (table 8 there, after Brown et al., 2020). `unifiedqa`: the question
and what is known, in the one line of small letters that UnifiedQA was trained on (Khashabi et al., 2022)."""

GAPS: dict[Layout, str] = {"ircot": "\n\n\n", "qa": "\n\n", "entailment": "\n\n", "unifiedqa": "\n\n"}
"""The text between demonstrations."""


class AnswerForm(StrEnum):
    """The form of the text that follows "A:" in a prompt."""

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


def block(layout: Layout, paragraphs: Iterable[Paragraph], question: str, answer: str) -> str:
    """A question with its paragraphs and its answer, or the beginning of one for the model to continue."""
    match layout:
        case "entailment":
            return "\n".join([*(each.text for each in paragraphs), f"Question: {question}", f"Answer: {answer}"])
        case "unifiedqa":
            told = " ".join(each.text for each in paragraphs)
            return f"{question} \\n {told}".lower()
    context = [f"Wikipedia Title: {each.title}\n{each.text}" if each.title else each.text for each in paragraphs]
    return "\n\n".join([*context, f"Q: {question}\nA: {answer}"])


class Demonstration(Struct, frozen=True, kw_only=True):
    """A solved question: its paragraphs (gold and distractors) and what stands behind "A:"."""

    id: str
    paragraphs: tuple[Paragraph, ...]
    question: str
    answer: str

    def render(self, layout: Layout = "ircot") -> str:
        """The demonstration as it stands in a prompt."""
        return block(layout, self.paragraphs, self.question, self.answer)


class Demonstrations(Struct, frozen=True, kw_only=True, dict=True):
    """The demonstrations of a run in one answer form, in the order of the prompt."""

    items: tuple[Demonstration, ...] = ()

    @cached_property
    def instruction(self) -> str:
        """The lines before the question that all demonstrations share, as for Flan-T5; empty where there are none."""
        instructions = {demonstration.question.rpartition("\n")[0] for demonstration in self.items}
        return instructions.pop() if len(instructions) == 1 else ""

    @property
    def text(self) -> str:
        """All of them in the layout of IRCoT, whatever layout prompts have."""
        return self.laid_out("ircot")

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the text."""
        return self.hash().hexdigest()

    def laid_out(self, layout: Layout) -> str:
        """The text before the test question's own part: each demonstration and the gap behind it."""
        return self._laid_out(layout)[0]

    def hash(self, layout: Layout = "ircot") -> "hashlib._Hash":
        """A SHA-256 that has already taken in the text, so that the long common part of prompts is hashed once."""
        return self._laid_out(layout)[1].copy()

    def _laid_out(self, layout: Layout) -> "tuple[str, hashlib._Hash]":
        if layout not in self._texts:
            text = "".join(each.render(layout) + GAPS[layout] for each in self.items)
            self._texts[layout] = text, hashlib.sha256(text.encode())
        return self._texts[layout]

    @cached_property
    def _texts(self) -> "dict[Layout, tuple[str, hashlib._Hash]]":
        return {}


Shots = Mapping[AnswerForm, Demonstrations]
"""A run's demonstrations in each answer form that its system shows."""


class Prompt(Struct, frozen=True, kw_only=True, dict=True):
    """Everything that a model is shown for one step.

    paragraphs: in the order collected, so that the prompts of a question share a long prefix.
    sentences: the chain of thought so far, which the model continues.
    max_paragraph_words: each paragraph is cut to this many space-separated words.
    drop: which demonstrations are left out where not all fit.
    pinned_last: whether the first of the paragraphs, a pinned passage, stands behind the others in the text. Where not
        all fit it stays the longest all the same.
    layout: how all of it is laid out as a text.
    first_demonstration: where the first of these demonstrations stood before `keep` left out others, from 0; it shows
        nowhere in the text.
    """

    demonstrations: Demonstrations
    paragraphs: tuple[Paragraph, ...] = ()
    question: str
    sentences: tuple[str, ...] = ()
    max_paragraph_words: int = 350
    drop: Drop = "last"
    pinned_last: bool = False
    layout: Layout = "ircot"
    first_demonstration: int = 0

    def render(self) -> str:
        """The text for the model: demonstrations, paragraphs, question, and the chain so far."""
        return self.shared + self._test_block()

    @property
    def shared(self) -> str:
        """The text before the test question's own part, which the prompts of a run share (prefix cache)."""
        return self.demonstrations.laid_out(self.layout)

    def _test_block(self) -> str:
        moved = int(self.pinned_last)
        ordered = self.paragraphs[moved:] + self.paragraphs[:moved]
        shown = tuple(_cut(p, self.max_paragraph_words) for p in ordered)
        return block(self.layout, shown, self.question, " ".join(self.sentences)).rstrip()

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the rendered prompt."""
        hashed = self.demonstrations.hash(self.layout)
        hashed.update(self._test_block().encode())
        return hashed.hexdigest()

    def keep(self, demonstrations: int, paragraphs: int, first: int = 0) -> "Prompt":
        """The same prompt with its demonstrations from number `first` on, this many, and its first paragraphs."""
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
