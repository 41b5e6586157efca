"""The reader's step: one `Read` of the answer from the paragraphs (IRCoT, section 3.2)."""

from cotrail.core.actions.read import Read
from cotrail.core.generation import Until
from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import AnswerForm, Layout, Prompt, Shots
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Part, expect
from cotrail.systems.parts.prompting import PromptSettings, instructed, pinned_is_last
from cotrail.systems.parts.reader import ReaderSettings


def read(
    question: Question,
    paragraphs: tuple[Paragraph, ...],
    shots: Shots,
    settings: ReaderSettings,
    prompting: PromptSettings,
    *,
    max_paragraph_words: int = 350,
    sentences: tuple[str, ...] = (),
    layout: Layout = "ircot",
    until: Until = "line",
) -> Part[str]:
    """The answer that the reader gives, shown these paragraphs.

    sentences: the beginning of a chain of thought, which the reader continues.
    """
    demonstrations = shots[AnswerForm(settings.reader)]
    prompt = Prompt(
        demonstrations=demonstrations,
        paragraphs=paragraphs,
        question=instructed(question.text, settings.instruction_like(demonstrations.instruction)),
        sentences=sentences,
        max_paragraph_words=max_paragraph_words,
        drop=prompting.drop,
        pinned_last=pinned_is_last(question, prompting),
        layout=layout,
    )
    reply = yield Read(prompt=prompt, max_tokens=settings.max_tokens, until=until)
    return settings.answer_in(expect(reply, Generated).text)
