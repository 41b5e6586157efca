"""How the tasks of Rethinking with Retrieval put a question to a model (sections 4.1 and A.1)."""

from cotrail.core.auxiliary_questions import OPENING, YES_OR_NO
from cotrail.core.prompts import Demonstrations, Prompt
from cotrail.core.questions import Question
from cotrail.faithfulness.rules import prediction
from cotrail.faithfulness.tasks import Task
from cotrail.systems.reading import instructed, shown
from cotrail.systems.settings import TaskSettings


def task_question(question: Question, task: Task) -> str:
    """The question as the task asks it."""
    return f"{YES_OR_NO}{question.text}" if task == "commonsense" else question.text


def task_prompt(question: Question, demonstrations: Demonstrations, settings: TaskSettings) -> Prompt:
    """The demonstrations and the question, with no paragraph but the passage that it pins.

    UnifiedQA knows a question for one of yes or no by itself.
    """
    layout = settings.prompt_layout
    asked = question.text if layout == "unifiedqa" else task_question(question, settings.task)
    return Prompt(
        demonstrations=demonstrations,
        paragraphs=shown(question, ()),
        question=instructed(asked, demonstrations.instruction),
        drop=settings.prompting.drop,
        layout=layout,
    )


def task_answer(text: str, settings: TaskSettings) -> str:
    """The prediction in an answer that stands alone, without the sentence that states it; empty where it is none.

    The released code takes the text as it is.
    """
    if settings.chain_rules != "released":
        return prediction(f"{OPENING} {text}", settings.task, settings.chain_rules)
    return text if settings.task == "temporal" else prediction(text, settings.task, settings.chain_rules)
