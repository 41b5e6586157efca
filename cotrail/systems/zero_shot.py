"""Zero-shot prompting, a baseline of Rethinking with Retrieval (section 4.1)."""

from msgspec.structs import replace

from cotrail.core.actions.read import Read
from cotrail.core.prompts import Demonstrations
from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.systems.parts.reading import Shots, text_of
from cotrail.systems.parts.tasks import task_answer, task_prompt
from cotrail.systems.rethinking.settings import ZeroShotSettings


def zero_shot(question: Question, shots: Shots, settings: ZeroShotSettings) -> System:  # noqa: ARG001
    """Has the model end the sentence that states the answer."""
    prompt = task_prompt(question, Demonstrations(), settings)
    opening = settings.answer_opening
    stating = replace(prompt, sentences=(opening,) if opening else ())
    asked = Read(prompt=stating, max_tokens=settings.max_tokens, until=settings.until, temperature=0.0)
    return Answer(text=task_answer(text_of((yield asked)), settings))
