"""Zero-shot prompting, a baseline of Rethinking with Retrieval (section 4.1)."""

from cotrail.core.actions.generate import Read
from cotrail.core.demonstrations import AnswerForm, Demonstrations, Shots
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, System, expect
from cotrail.systems.parts.majority import OPENINGS, BaselineSettings, task_answer, task_prompt
from cotrail.systems.parts.rules import StepBound, released_chains
from cotrail.systems.spec import Needs, SystemSpec, always, description


class ZeroShotSettings(BaselineSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question without demonstrations."""

    opening: str | None = None
    """The beginning of the answer, which the model continues; the task's own unless given."""

    @property
    def answer_opening(self) -> str:
        """The beginning of the answer; empty for UnifiedQA, which answers at once."""
        if self.opening is not None:
            return self.opening
        return "" if self.layout == "unifiedqa" else OPENINGS[self.task]


def zero_shot(question: Question, shots: Shots, settings: ZeroShotSettings) -> System:  # noqa: ARG001
    """Have the model end the sentence that states the answer."""
    prompt = task_prompt(question, Demonstrations(), settings, settings.answer_opening)
    # Greedy at any temperature of the run: the method has a single answer, which should be the likeliest.
    reply = yield Read(prompt=prompt, max_tokens=settings.max_tokens, until=settings.until, temperature=0.0)
    return Answer(text=task_answer(expect(reply, Generated).text, settings))


def step_bounds(question: Question, settings: ZeroShotSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`."""
    return (StepBound(kind="read", times=1, output=settings.max_tokens, form=AnswerForm.DIRECT),)


SPEC = SystemSpec(
    **description("zero-shot"),
    settings=ZeroShotSettings,
    open=zero_shot,
    # That there are no demonstrations is stored like any others.
    needs=always(Needs(brought={AnswerForm.DIRECT: Demonstrations()})),
    released=released_chains,
    step_bounds=step_bounds,
)
SPECS = (SPEC,)
