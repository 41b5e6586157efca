"""Baselines of Rethinking with Retrieval (section 4.1): zero-shot, few-shot, a chain of thought, self-consistency."""

from cotrail.core.actions.generate import Read, Reason
from cotrail.core.demonstrations import AnswerForm, Demonstrations, Shots
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, System, expect
from cotrail.faithfulness.paper import sentences
from cotrail.faithfulness.rules import prediction
from cotrail.faithfulness.weighing import Weighing
from cotrail.systems.parts.majority import (
    OPENINGS,
    BaselineSettings,
    SampledSettings,
    most_chains,
    sample_chains,
    task_answer,
    task_prompt,
    voted,
)
from cotrail.systems.parts.rules import RELEASED_CHAINS, Limited, StepBound
from cotrail.systems.parts.steps import texts_before
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


# Those with a single answer are greedy at any temperature of the run: it should be the likeliest.


def zero_shot(question: Question, shots: Shots, settings: ZeroShotSettings) -> System:  # noqa: ARG001
    """Have the model end the sentence that states the answer."""
    prompt = task_prompt(question, Demonstrations(), settings, settings.answer_opening)
    reply = yield Read(prompt=prompt, max_tokens=settings.max_tokens, until=settings.until, temperature=0.0)
    return Answer(text=task_answer(expect(reply, Generated).text, settings))


def few_shot(question: Question, shots: Shots, settings: BaselineSettings) -> System:
    """Have the model answer at once, as the demonstrations do without their chains (Brown et al., 2020)."""
    prompt = task_prompt(question, shots[AnswerForm.DIRECT], settings)
    reply = yield Read(prompt=prompt, max_tokens=settings.max_tokens, until=settings.until, temperature=0.0)
    return Answer(text=task_answer(expect(reply, Generated).text, settings))


def chain_of_thought(question: Question, shots: Shots, settings: BaselineSettings) -> System:
    """Take the answer that the likeliest chain states (Wei et al., 2022)."""
    prompt = task_prompt(question, shots[AnswerForm.COT], settings)
    reply = yield Reason(prompt=prompt, max_tokens=settings.max_tokens, until=settings.until, temperature=0.0)
    chain = expect(reply, Generated).text
    text = prediction(chain, settings.task, settings.chain_rules)
    return Answer(text=text.strip(), sentences=sentences(chain))


def self_consistency(question: Question, shots: Shots, settings: SampledSettings) -> System:
    """Sample chains and take the answer that most of them state (Wang et al., 2022)."""
    with Limited() as end:
        chains = yield from sample_chains(question, shots, settings)
        return voted(chains, settings)
    return voted(texts_before(end), settings)


def _one_answer(question: Question, settings: BaselineSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    return (StepBound(kind="read", times=1, output=settings.max_tokens, form=AnswerForm.DIRECT),)


SPECS = (
    SystemSpec(
        **description("zero-shot"),
        settings=ZeroShotSettings,
        open=zero_shot,
        # That there are no demonstrations is stored like any others.
        needs=always(Needs(brought={AnswerForm.DIRECT: Demonstrations()})),
        released=RELEASED_CHAINS,
        step_bounds=_one_answer,
    ),
    SystemSpec(
        **description("few-shot"),
        settings=BaselineSettings,
        open=few_shot,
        needs=always(Needs(forms=frozenset({AnswerForm.DIRECT}))),
        released=RELEASED_CHAINS,
        step_bounds=_one_answer,
    ),
    SystemSpec(
        **description("chain-of-thought"),
        settings=BaselineSettings,
        open=chain_of_thought,
        needs=always(Needs(forms=frozenset({AnswerForm.COT}))),
        released=RELEASED_CHAINS,
        step_bounds=lambda _, settings: (
            StepBound(kind="reason", times=1, output=settings.max_tokens, form=AnswerForm.COT),
        ),
    ),
    SystemSpec(
        **description("self-consistency"),
        settings=SampledSettings,
        open=self_consistency,
        needs=always(Needs(forms=frozenset({AnswerForm.COT}), samples=True)),
        released=RELEASED_CHAINS,
        step_bounds=lambda _, settings: most_chains(settings),
        details=Weighing,
    ),
)
