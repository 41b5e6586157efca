"""The reader behind every system (IRCoT, section 3.2)."""

from collections.abc import Generator, Mapping

from cotrail.actions import Action, Generated, Read, Result, Together
from cotrail.paragraphs import Paragraph
from cotrail.prompting.answers import stated_answer
from cotrail.prompting.prompt import AnswerForm, Demonstrations, Prompt
from cotrail.questions import Question
from cotrail.systems.settings import ReaderSettings

Shots = Mapping[AnswerForm, Demonstrations]
"""A run's demonstrations in each answer form that its system needs."""


def read(
    question: Question,
    paragraphs: tuple[Paragraph, ...],
    shots: Shots,
    settings: ReaderSettings,
    prompt_paragraph_words: int = 350,
) -> Generator[Action | Together, Result | tuple[Result, ...], str]:
    """One `Read`; returns the answer.

    A chain of thought that states no answer is the answer as a whole, as in the paper.
    """
    form = AnswerForm(settings.reader)
    tokens = settings.max_chain_tokens if form is AnswerForm.COT else settings.max_answer_tokens
    prompt = Prompt(
        demonstrations=shots[form],
        paragraphs=paragraphs,
        question=question.text,
        max_paragraph_words=prompt_paragraph_words,
    )
    text = text_of((yield Read(prompt=prompt, max_tokens=tokens)))
    if form is AnswerForm.COT:
        return stated_answer(text) or text
    return text.removesuffix(".")


def text_of(result: Result | tuple[Result, ...]) -> str:
    """What a `Reason` or a `Read` wrote."""
    assert isinstance(result, Generated)  # noqa: S101 - what both are answered with
    return result.text
