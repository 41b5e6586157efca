"""Auto-CoT: demonstrations that a model wrote itself, of questions unlike one another (Zhang et al., 2022, section 4).

They are built beforehand: `cotrail demonstrations from-run`.
"""

from msgspec import Struct

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Reason
from cotrail.core.answer_extraction import STEP_BY_STEP
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.faithfulness.paper import sentences
from cotrail.systems.parts.answers import behind_answer_is
from cotrail.systems.parts.prompting import PromptSettings, few_shot_prompt, instructed
from cotrail.systems.parts.rules import StepBound
from cotrail.systems.parts.steps import last_text
from cotrail.systems.spec import Needs, SystemSpec, always, description


class AutoCoTSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Auto-CoT."""

    max_tokens: Positive = 256
    """The most tokens of the chain."""

    temperature: Temperature | None = None
    """The temperature; the run's unless given."""

    prompting: PromptSettings = PromptSettings()


def auto_cot(question: Question, shots: Shots, settings: AutoCoTSettings) -> System:
    """Have the model think step by step as in the demonstrations; the answer is what its chain states."""
    demonstrations = shots[AnswerForm.COT]
    prompt = few_shot_prompt(
        demonstrations=demonstrations,
        question=instructed(question.text, demonstrations.instruction),
        sentences=(STEP_BY_STEP,),
        drop=settings.prompting.drop,
        layout="qa",
    )
    reason = Reason(prompt=prompt, max_tokens=settings.max_tokens, until="chain", temperature=settings.temperature)
    chain = yield from last_text(reason)
    return Answer(text=behind_answer_is(chain) or "", sentences=sentences(chain))


SPEC = SystemSpec(
    **description("auto-cot"),
    settings=AutoCoTSettings,
    open=auto_cot,
    needs=always(Needs(forms=frozenset({AnswerForm.COT}))),
    step_bounds=lambda _, settings: (
        StepBound(kind="reason", times=1, output=settings.max_tokens, form=AnswerForm.COT),
    ),
)
SPECS = (SPEC,)
