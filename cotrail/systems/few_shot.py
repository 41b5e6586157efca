"""Few-shot prompting, a baseline of Rethinking with Retrieval (section 4.1)."""

from cotrail.core.actions.read import Read
from cotrail.core.prompts import AnswerForm
from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.systems.parts.reading import Shots, text_of
from cotrail.systems.parts.tasks import task_answer, task_prompt
from cotrail.systems.rethinking.settings import BaselineSettings


def few_shot(question: Question, shots: Shots, settings: BaselineSettings) -> System:
    """Has the model answer at once, as the demonstrations do without their chains."""
    prompt = task_prompt(question, shots[AnswerForm.DIRECT], settings)
    asked = Read(prompt=prompt, max_tokens=settings.max_tokens, until=settings.until, temperature=0.0)
    return Answer(text=task_answer(text_of((yield asked)), settings))
