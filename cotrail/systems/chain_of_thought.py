"""Chain-of-thought prompting (Wei et al., 2022), a baseline of Rethinking with Retrieval (section 4.1)."""

from cotrail.core.actions.reason import Reason
from cotrail.core.prompts import AnswerForm
from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.faithfulness.paper import sentences
from cotrail.faithfulness.rules import prediction
from cotrail.systems.parts.reading import Shots, text_of
from cotrail.systems.parts.tasks import task_prompt
from cotrail.systems.rethinking.settings import BaselineSettings


def chain_of_thought(question: Question, shots: Shots, settings: BaselineSettings) -> System:
    """Takes the answer that the likeliest chain states."""
    prompt = task_prompt(question, shots[AnswerForm.COT], settings)
    asked = Reason(prompt=prompt, max_tokens=settings.max_tokens, until=settings.until, temperature=0.0)
    chain = text_of((yield asked))
    text = prediction(chain, settings.task, settings.chain_rules)
    return Answer(text=text.strip(), sentences=sentences(chain))
