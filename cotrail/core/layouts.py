"""Layouts of few-shot prompts: the words around paragraphs, questions and demonstrations."""

from typing import Literal

from msgspec import Struct

Layout = Literal["ircot", "qa", "entailment", "unifiedqa"]
"""`ircot`: titled paragraphs, "Q:" and "A:", as in the released prompts of IRCoT. `qa`: the same with one blank line
between demonstrations, as in Rethinking with Retrieval (table 6). `entailment`: a premise, and right below it a
"Question:" about a hypothesis and its "Answer:" (table 8 there, after Brown et al., 2020). `unifiedqa`: the question
and what is known, in the one line of small letters that UnifiedQA was trained on (Khashabi et al., 2022)."""


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
