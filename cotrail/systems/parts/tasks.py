"""Questions of the tasks of Rethinking with Retrieval, as a model is asked them (sections 4.1 and A.1)."""

from cotrail.core.answer_extraction import OPENING, YES_OR_NO
from cotrail.core.demonstrations import Demonstrations
from cotrail.core.few_shot import few_shot_prompt
from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Question
from cotrail.faithfulness.rules import prediction
from cotrail.faithfulness.tasks import Task
from cotrail.systems.parts.prompting import instructed, shown
from cotrail.systems.parts.task_settings import TaskSettings

OPENINGS: dict[Task, str] = {"commonsense": "So the answer is", "temporal": "The answer is", "tabular": ""}
"""The beginning of the answer that zero-shot prompts have the model continue (the released code)."""


def task_question(question: Question, task: Task) -> str:
    """The question as the task asks it."""
    return f"{YES_OR_NO}{question.text}" if task == "commonsense" else question.text


def task_prompt(
    question: Question,
    demonstrations: Demonstrations,
    settings: TaskSettings,
    opening: str = "",
    facts: tuple[Paragraph, ...] = (),
) -> Prompt:
    """The demonstrations and the question, with no paragraph but the passage that it pins.

    opening: the beginning of the answer, which the model continues; facts: further paragraphs.
    """
    layout = settings.prompt_layout
    # UnifiedQA recognises a yes-or-no question by itself.
    question_text = question.text if layout == "unifiedqa" else task_question(question, settings.task)
    return few_shot_prompt(
        demonstrations=demonstrations,
        paragraphs=(*shown(question, ()), *facts),
        question=instructed(question_text, demonstrations.instruction),
        sentences=(opening,) if opening else (),
        drop=settings.prompting.drop,
        layout=layout,
    )


def task_answer(text: str, settings: TaskSettings) -> str:
    """The prediction in an answer that stands alone, without the sentence that states it; empty if it has none.

    The released code takes a temporal answer as it is.
    """
    if settings.chain_rules != "released":
        # The rules read statements ("So the answer is ..."), so that a bare answer is read as the end of one.
        return prediction(f"{OPENING} {text}", settings.task, settings.chain_rules)
    return text if settings.task == "temporal" else prediction(text, settings.task, settings.chain_rules)
