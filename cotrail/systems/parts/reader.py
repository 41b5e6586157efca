"""The reader: the last step, which reads the answer from the paragraphs (IRCoT, section 3.2)."""

from cotrail.core.demonstrations import AnswerForm, Layout, Shots
from cotrail.core.few_shot import few_shot_prompt
from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Question
from cotrail.systems.parts.prompting import PromptSettings, instructed, pinned_is_last
from cotrail.systems.parts.reader_settings import ReaderSettings


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
