"""Demonstrations: solved questions that a prompt shows before the one it asks (IRCoT, section 3.1)."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Literal

from msgspec import Struct

from cotrail.core.questions import Paragraph

Layout = Literal["ircot", "qa", "entailment", "unifiedqa"]
"""`ircot`: titled paragraphs, "Q:" and "A:", as in the released prompts of IRCoT. `qa`: the same with one blank line
between demonstrations, as in Rethinking with Retrieval (table 6). `entailment`: a premise, and right below it a
"Question:" about a hypothesis and its "Answer:" (table 8 there, after Brown et al., 2020). `unifiedqa`: the question
and what is known, in the one line of small letters that UnifiedQA was trained on (Khashabi et al., 2022)."""

RELEASED = "released"
"""Name of the sets that the authors of IRCoT used, to be given instead of a file of lists."""


class Words(Struct, frozen=True, kw_only=True):
    """The words of a layout.

    titled, untitled: a paragraph with a title, and one without; asked: the question and what stands before its answer.
    gap: between demonstrations.
    """

    titled: str
    untitled: str
    asked: str
    gap: str

    def paragraph(self, title: str) -> str:
        """The form of a paragraph with this title, which may be empty."""
        return self.titled if title else self.untitled


_TITLED, _UNTITLED, _ASKED = "Wikipedia Title: {title}\n{text}\n\n", "{text}\n\n", "Q: {question}\nA:"

WORDS: dict[Layout, Words] = {
    "ircot": Words(titled=_TITLED, untitled=_UNTITLED, asked=_ASKED, gap="\n\n\n"),
    "qa": Words(titled=_TITLED, untitled=_UNTITLED, asked=_ASKED, gap="\n\n"),
    "entailment": Words(titled="{text}\n", untitled="{text}\n", asked="Question: {question}\nAnswer:", gap="\n\n"),
    "unifiedqa": Words(titled=" {text}", untitled=" {text}", asked="{question} \\n", gap="\n\n"),
}


def fill(form: str, place: str, value: str) -> str:
    """The form with a value in the first of its places of this name; what the value itself holds stays as it is."""
    before, marker, after = form.partition(f"{{{place}}}")
    return f"{before}{value}{after}" if marker else form


def fill_paragraph(form: str, title: str, text: str) -> str:
    """The form with a text and, before that, a title."""
    before, _, after = form.partition("{text}")
    return before.replace("{title}", title) + text + after


Drop = Literal["last", "first", "released"]
"""Which demonstrations go where not all fit: the `last` ones, so that all prompts of a run begin alike; the `first`
ones; or those that the `released` code of IRCoT drops for models with a fixed context: the last ones as it loads them,
with room to spare, and then the first ones. `cotrail.engines.language_models.packing` does it."""


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

    PROMPT = "prompt"
    """No answers: the words of prompts by their names, as questions, with places such as `{question}` in them."""


def solved(layout: Layout, paragraphs: Iterable[Paragraph], question: str, answer: str) -> str:
    """A question with its paragraphs and its answer."""
    words = WORDS[layout]
    context = "".join(fill_paragraph(words.paragraph(each.title), each.title, each.text) for each in paragraphs)
    question_text = fill(words.asked, "question", question)
    return f"{question_text}{context}".lower() if layout == "unifiedqa" else f"{context}{question_text} {answer}"


class Demonstration(Struct, frozen=True, kw_only=True):
    """A solved question: its paragraphs (gold and distractors) and what stands behind "A:"."""

    id: str
    paragraphs: tuple[Paragraph, ...]
    question: str
    answer: str

    def render(self, layout: Layout = "ircot") -> str:
        """The demonstration as it is in a prompt."""
        return solved(layout, self.paragraphs, self.question, self.answer)


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
            text = "".join(each.render(layout) + WORDS[layout].gap for each in self.items)
            self._texts[layout] = text, hashlib.sha256(text.encode())
        return self._texts[layout]

    @cached_property
    def _texts(self) -> "dict[Layout, tuple[str, hashlib._Hash]]":
        return {}


QUESTION = "{question}"
"""The place of the question in the words of a whole prompt."""


def whole_prompts(words: Mapping[str, str]) -> Demonstrations:
    """The words of whole prompts, by their names, as they are stored with a run, in the form `PROMPT`."""
    items = (Demonstration(id=name, paragraphs=(), question=each, answer="") for name, each in words.items())
    return Demonstrations(items=tuple(items))


Shots = Mapping[AnswerForm, Demonstrations]
"""A run's demonstrations in each answer form that its system shows."""


# Long parts of requests, which are stored apart from them.


class Stored(Struct, frozen=True):
    """Long parts of requests, which are stored once and stand in requests by their digests.

    Both raise where nothing of a digest is stored: `paragraphs` KeyError, `demonstrations` whatever its store does.
    """

    paragraphs: Mapping[str, Paragraph]
    demonstrations: Callable[[str], Demonstrations]

    def referred(self, digests: tuple[str, ...]) -> tuple[Paragraph, ...]:
        """The paragraphs of these digests; raises KeyError."""
        return tuple(self.paragraphs[digest] for digest in digests)
