"""The reader's step, with which a system ends (IRCoT, section 3.2)."""

from typing import Literal

from msgspec import Struct

from cotrail.common.humanize import Positive
from cotrail.core.actions.generate import Read
from cotrail.core.answer_extraction import released_answer, stated_answer
from cotrail.core.demonstrations import AnswerForm, Layout, Shots
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import Part
from cotrail.systems.parts.prompting import PromptSettings, few_shot_prompt, instructed, pinned_is_last
from cotrail.systems.parts.rules import StepBound
from cotrail.systems.parts.steps import last_text

Reader = Literal["direct", "cot", "none"]

INSTRUCTION = "Answer the following question."
"""The line that the released code puts before every question that its reader asks of Flan-T5."""


class ReaderSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reader of a system."""

    reader: Reader = "direct"
    """`direct` writes the answer at once, `cot` a chain of thought that ends in it; with `none` the answer is what
    IRCoT's own chain states (appendix F), and other systems end with their paragraphs."""

    instruction: Literal["demonstrated", "released"] = "demonstrated"
    """The line before the question where demonstrations have such a line: theirs (`demonstrated`), or always
    "Answer the following question." (`released`, which the code does also for chains)."""

    answers: Literal["stated", "released"] = "stated"
    """What counts as the answer in what was written: what a chain states unless it is empty, and a direct reader's
    text without a full stop at its end (`stated`), or what the `released` code makes of either, see
    `cotrail.core.answer_extraction.released_answer`. It also says whether an empty statement ends IRCoT's chain."""

    max_answer_tokens: Positive = 64
    """The most tokens of a direct answer."""

    max_chain_tokens: Positive = 200
    """The most tokens of a reader's chain."""

    @property
    def forms(self) -> frozenset[AnswerForm]:
        """The form of the demonstrations that the reader shows; none without a reader."""
        return frozenset() if self.reader == "none" else frozenset({AnswerForm(self.reader)})

    @property
    def max_tokens(self) -> int:
        """The most tokens that the reader writes."""
        return self.max_chain_tokens if self.reader == "cot" else self.max_answer_tokens

    def instruction_like(self, demonstrated: str) -> str:
        """The line before the question, given that of the demonstrations; empty where they have none."""
        return INSTRUCTION if demonstrated and self.instruction == "released" else demonstrated

    def answer_in(self, text: str) -> str:
        """The answer in what the reader wrote; a chain that states none is the answer as a whole, as in the paper."""
        is_chain = self.reader == "cot"
        if self.answers == "released":
            return released_answer(text, chain=is_chain)
        return (stated_answer(text) or text) if is_chain else text.removesuffix(".")

    def step_bounds(self, words: int = 0) -> tuple[StepBound, ...]:
        """The reader's step, where there is a reader; words: of the paragraphs that it is shown."""
        if self.reader == "none":
            return ()
        form = AnswerForm(self.reader)
        return (StepBound(kind="read", times=1, output=self.max_tokens, words=words, form=form),)


def reader_prompt(
    question: Question,
    paragraphs: tuple[Paragraph, ...],
    shots: Shots,
    settings: ReaderSettings,
    prompting: PromptSettings,
    max_paragraph_words: int = 350,
    sentences: tuple[str, ...] = (),
    layout: Layout = "ircot",
) -> Prompt:
    """The prompt of the reader's `Read`, which shows these paragraphs; sentences: the beginning of the answer."""
    demonstrations = shots[AnswerForm(settings.reader)]
    return few_shot_prompt(
        demonstrations=demonstrations,
        paragraphs=paragraphs,
        question=instructed(question.text, settings.instruction_like(demonstrations.instruction)),
        sentences=sentences,
        max_paragraph_words=max_paragraph_words,
        drop=prompting.drop,
        pinned_last=pinned_is_last(question, prompting),
        layout=layout,
    )


def read_answer(
    question: Question,
    paragraphs: tuple[Paragraph, ...],
    shots: Shots,
    settings: ReaderSettings,
    prompting: PromptSettings,
    max_paragraph_words: int = 350,
) -> Part[str]:
    """One `Read`; returns the answer that the reader reads from these paragraphs."""
    prompt = reader_prompt(question, paragraphs, shots, settings, prompting, max_paragraph_words)
    return settings.answer_in((yield from last_text(Read(prompt=prompt, max_tokens=settings.max_tokens))))
