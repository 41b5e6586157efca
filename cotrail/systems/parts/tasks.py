"""Questions of the tasks of Rethinking with Retrieval, as a model is asked them (sections 4.1 and A.1)."""

from msgspec import Struct

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.answer_extraction import OPENING, YES_OR_NO
from cotrail.core.demonstrations import Demonstrations, Layout
from cotrail.core.few_shot import few_shot_prompt
from cotrail.core.generation import Until
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Paragraph, Question
from cotrail.faithfulness.rules import prediction
from cotrail.faithfulness.tasks import ChainRules, Task
from cotrail.systems.parts.prompting import PromptSettings, instructed, shown

# The settings of prompts for the tasks of Rethinking with Retrieval (sections 4.1 and A.1).

LAYOUTS: dict[Task, Layout] = {"commonsense": "qa", "temporal": "qa", "tabular": "entailment"}
"""The layout of each task's prompts (Rethinking with Retrieval, appendix A.1)."""


class TaskSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prompts for the questions of a task, and the reading of what the model writes."""

    task: Task = "commonsense"
    """The form of questions and predictions: yes or no, a text, or true or false."""

    prompting: PromptSettings = PromptSettings()
    layout: Layout | None = None
    """How prompts are laid out; the task's own unless given."""

    until: Until = "chain"
    """Where a text ends: behind a sentence, at the line's end, before a further demonstration (`chain`), or where
    the model ends it. The paper's chains end where the model ends them or begins a further demonstration."""

    chain_rules: ChainRules = "paper"
    """The rules by which chains are read and weighed: the paper's, or those of the released code."""

    @property
    def prompt_layout(self) -> Layout:
        """The layout of prompts."""
        return self.layout or LAYOUTS[self.task]


class BaselineSettings(TaskSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A prompt without any knowledge source, answered once (Rethinking with Retrieval, sections 4.1 and 4.5)."""

    max_tokens: Positive = 256
    """The most tokens that the model writes."""


class SampledSettings(TaskSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Several chains of thought (Wang et al., 2022), sampled as in Rethinking with Retrieval, section 4.5."""

    chains: Positive | None = None
    """The number of chains; 10 unless given, and 9 for yes or no."""

    temperature: Temperature = 0.7
    """The temperature at which chains are sampled."""

    max_chain_tokens: Positive = 256
    """The most tokens of a chain."""

    @property
    def chain_count(self) -> int:
        """The number of chains that are sampled."""
        return self.chains or (9 if self.task == "commonsense" else 10)


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
