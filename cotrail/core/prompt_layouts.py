"""How the parts of a prompt are laid out as a text."""

from collections.abc import Iterable
from typing import Literal

from cotrail.core.paragraphs import Paragraph

Layout = Literal["ircot", "qa", "entailment", "unifiedqa"]
"""`ircot`: titled paragraphs, "Q:" and "A:", as in the released prompts of IRCoT. `qa`: the same with one blank line
between demonstrations, as in Rethinking with Retrieval (table 6). `entailment`: a premise, and right below it a
"Question:" about a hypothesis and its "Answer:" (table 8 there, after Brown et al., 2020). `unifiedqa`: the question
and what is known, in the one line of small letters that UnifiedQA was trained on (Khashabi et al., 2022)."""

GAPS: dict[Layout, str] = {"ircot": "\n\n\n", "qa": "\n\n", "entailment": "\n\n", "unifiedqa": "\n\n"}
"""What stands between demonstrations."""


def block(layout: Layout, paragraphs: Iterable[Paragraph], question: str, answer: str) -> str:
    """A solved question, or with the beginning of an answer one that is to be solved."""
    match layout:
        case "entailment":
            return "\n".join([*(each.text for each in paragraphs), f"Question: {question}", f"Answer: {answer}"])
        case "unifiedqa":
            told = " ".join(each.text for each in paragraphs)
            return f"{question} \\n {told}".lower()
    context = [f"Wikipedia Title: {each.title}\n{each.text}" if each.title else each.text for each in paragraphs]
    return "\n\n".join([*context, f"Q: {question}\nA: {answer}"])
