"""Chain-of-thought prompting (Wei et al., 2022), a baseline of Rethinking with Retrieval (section 4.1)."""

from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, System, expect
from cotrail.faithfulness.paper import sentences
from cotrail.faithfulness.rules import prediction
from cotrail.systems.parts.majority import BaselineSettings, task_prompt
from cotrail.systems.parts.rules import StepBound, released_chains
from cotrail.systems.spec import Needs, SystemSpec, always, description


def chain_of_thought(question: Question, shots: Shots, settings: BaselineSettings) -> System:
    """Take the answer that the likeliest chain states."""
    prompt = task_prompt(question, shots[AnswerForm.COT], settings)
    # Greedy at any temperature of the run, unlike the sampled chains of self-consistency.
    reply = yield Reason(prompt=prompt, max_tokens=settings.max_tokens, until=settings.until, temperature=0.0)
    chain = expect(reply, Generated).text
    text = prediction(chain, settings.task, settings.chain_rules)
    return Answer(text=text.strip(), sentences=sentences(chain))


def step_bounds(question: Question, settings: BaselineSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`."""
    return (StepBound(kind="reason", times=1, output=settings.max_tokens, form=AnswerForm.COT),)


SPEC = SystemSpec(
    **description("chain-of-thought"),
    settings=BaselineSettings,
    open=chain_of_thought,
    needs=always(Needs(forms=frozenset({AnswerForm.COT}))),
    released=released_chains,
    step_bounds=step_bounds,
)
SPECS = (SPEC,)
