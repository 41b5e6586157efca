"""Few-shot prompting, a baseline of Rethinking with Retrieval (section 4.1)."""

from cotrail.core.actions.generate import Read
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, System, expect
from cotrail.systems.parts.majority import BaselineSettings, task_answer, task_prompt
from cotrail.systems.parts.rules import StepBound, released_chains
from cotrail.systems.spec import Needs, SystemSpec, always, description


def few_shot(question: Question, shots: Shots, settings: BaselineSettings) -> System:
    """Have the model answer at once, as the demonstrations do without their chains."""
    prompt = task_prompt(question, shots[AnswerForm.DIRECT], settings)
    # Greedy at any temperature of the run: the method has a single answer, which should be the likeliest.
    reply = yield Read(prompt=prompt, max_tokens=settings.max_tokens, until=settings.until, temperature=0.0)
    return Answer(text=task_answer(expect(reply, Generated).text, settings))


def step_bounds(question: Question, settings: BaselineSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`."""
    return (StepBound(kind="read", times=1, output=settings.max_tokens, form=AnswerForm.DIRECT),)


SPEC = SystemSpec(
    **description("few-shot"),
    settings=BaselineSettings,
    open=few_shot,
    needs=always(Needs(forms=frozenset({AnswerForm.DIRECT}))),
    released=released_chains,
    step_bounds=step_bounds,
)
SPECS = (SPEC,)
