"""The reader's step, with which a system ends (IRCoT, section 3.2)."""

from cotrail.core.actions.generate import Read
from cotrail.core.demonstrations import Shots
from cotrail.core.paragraphs import Paragraph
from cotrail.core.questions import Question
from cotrail.core.system import Part
from cotrail.systems.parts.prompting import PromptSettings
from cotrail.systems.parts.reader import reader_prompt
from cotrail.systems.parts.reader_settings import ReaderSettings
from cotrail.systems.parts.steps import last_text


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
