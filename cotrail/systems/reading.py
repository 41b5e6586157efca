"""The reader behind every system (IRCoT, section 3.2)."""

from collections.abc import Generator, Mapping
from typing import TypeVar

from cotrail.core.actions.kind import Action
from cotrail.core.actions.read import Read
from cotrail.core.actions.reason import Reason
from cotrail.core.answer_extraction import released_answer, stated_answer
from cotrail.core.generation import Until
from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import AnswerForm, Demonstrations, Layout, Prompt
from cotrail.core.questions import GoldParagraph, Question
from cotrail.core.results import Generated, Result
from cotrail.core.system import StepFailed, Together
from cotrail.systems.settings import PromptSettings, ReaderSettings, RetrievalSettings

T = TypeVar("T")

Part = Generator[Action | Together, Result | tuple[Result, ...], T]
"""A part of a system, which returns a T."""

Shots = Mapping[AnswerForm, Demonstrations]
"""A run's demonstrations in each answer form that its system needs."""

INSTRUCTION = "Answer the following question."
"""What the released code puts before every question that its reader asks of Flan-T5."""


NOTHING = "EmptyGenerationError"
"""The failure that records have where a model wrote nothing, from before that was the empty text."""


def read(
    question: Question,
    paragraphs: tuple[Paragraph, ...],
    shots: Shots,
    settings: ReaderSettings,
    prompting: PromptSettings,
    retrieval: RetrievalSettings | None = None,
    sentences: tuple[str, ...] = (),
    layout: Layout = "ircot",
    until: Until = "line",
) -> Part[str]:
    """One `Read`; returns the answer.

    sentences: the beginning of a chain of thought, which the reader goes on from.

    A chain of thought that states no answer is the answer as a whole, as in the paper.
    """
    form = AnswerForm(settings.reader)
    tokens = settings.max_chain_tokens if form is AnswerForm.COT else settings.max_answer_tokens
    instruction = shots[form].instruction
    if instruction and settings.instruction == "released":
        instruction = INSTRUCTION
    prompt = Prompt(
        demonstrations=shots[form],
        paragraphs=_read_from(question, paragraphs, prompting, retrieval),
        question=instructed(question.text, instruction),
        sentences=sentences,
        max_paragraph_words=(retrieval or RetrievalSettings()).prompt_paragraph_words,
        drop=prompting.drop,
        pinned_last=pinned_is_last(question, prompting),
        layout=layout,
    )
    text = text_of((yield Read(prompt=prompt, max_tokens=tokens, until=until)))
    if settings.answers == "released":
        return released_answer(text, chain=form is AnswerForm.COT)
    if form is AnswerForm.COT:
        return stated_answer(text) or text
    return text.removesuffix(".")


def _read_from(
    question: Question,
    collected: tuple[Paragraph, ...],
    prompting: PromptSettings,
    retrieval: RetrievalSettings | None,
) -> tuple[Paragraph, ...]:
    """The paragraphs of the reader's prompt.

    The released code (`add_and_reorder_if_pinned`) takes a paragraph with the text of the pinned passage for it: it
    stays where it is, or makes way for the passage at the bottom.
    """
    pinned = pinned_paragraph(question)
    released = retrieval is not None and retrieval.pinned == "released"
    if pinned is None or not released or pinned in collected:
        return shown(question, collected)
    texts = [paragraph.text for paragraph in collected]
    if pinned.text not in texts:
        return shown(question, collected)
    place = texts.index(pinned.text)
    return collected if prompting.pinned == "top" else (pinned, *collected[:place], *collected[place + 1 :])


def shown(question: Question, collected: tuple[Paragraph, ...]) -> tuple[Paragraph, ...]:
    """The paragraphs of a prompt: first the passage that the question pins, and what was collected."""
    pinned = pinned_paragraph(question)
    return collected if pinned is None or pinned in collected else (pinned, *collected)


def pinned_is_last(question: Question, prompting: PromptSettings) -> bool:
    """Whether the first of the paragraphs is a pinned passage that prompts show behind the others."""
    return question.pinned is not None and prompting.pinned == "bottom"


def pinned_paragraph(question: Question) -> Paragraph | None:
    """The passage that the question pins, as a paragraph."""
    return None if question.pinned is None else brought(question.pinned)


def brought(passage: GoldParagraph) -> Paragraph:
    """A passage that a question brings along, as a paragraph."""
    paragraph = Paragraph(id="", title=passage.title, text=passage.text)
    return Paragraph(id=paragraph.digest, title=paragraph.title, text=paragraph.text)


def instructed(question: str, instruction: str) -> str:
    """A question with the instruction that the demonstrations' questions have, on lines before it."""
    return f"{instruction}\n{question}" if instruction else question


def written(action: Reason) -> Part[str]:
    """What the model writes of a chain or a list, empty where it writes nothing."""
    try:
        return text_of((yield action))
    except StepFailed as failed:
        if failed.failure.type != NOTHING:
            raise
        return ""


def text_of(result: Result | tuple[Result, ...]) -> str:
    """What a `Reason` or a `Read` wrote."""
    assert isinstance(result, Generated)  # noqa: S101 - what both are answered with
    return result.text
