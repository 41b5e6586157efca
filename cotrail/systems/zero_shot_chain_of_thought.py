"""Zero-shot chain of thought: "Let's think step by step", then the answer (Kojima et al., 2022, section 3.1)."""

from msgspec import Struct

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Prompt, user
from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.systems.parts.answers import lines, stated_or_all
from cotrail.systems.parts.prompting import own_words, worded
from cotrail.systems.parts.rules import Limited, StepBound, words_in
from cotrail.systems.parts.steps import asked_on, last_text, text_of
from cotrail.systems.spec import Needs, SystemSpec, always, description

OWN = own_words("zero_shot_chain_of_thought")


class ZeroShotChainSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Zero-shot chain of thought."""

    max_chain_tokens: Positive = 256
    """The most tokens of the chain."""

    max_answer_tokens: Positive = 32
    """The most tokens of the answer that is extracted from it."""

    temperature: Temperature | None = None
    """The temperature of both; the run's unless given."""


def zero_shot_chain_of_thought(question: Question, shots: Shots, settings: ZeroShotChainSettings) -> System:
    """Have the model think step by step, and then name the answer of its chain."""
    prompt = Prompt(turns=(user(*worded(shots, OWN, "chain", question=Asked(question.text))),))
    chain = ""
    with Limited() as end:
        reason = Reason(
            prompt=prompt, max_tokens=settings.max_chain_tokens, until="end", temperature=settings.temperature
        )
        chain = yield from text_of(reason)
    extraction = Read(
        prompt=asked_on(prompt, chain, *worded(shots, OWN, "extract")),
        max_tokens=settings.max_answer_tokens,
        temperature=settings.temperature,
    )
    said = yield from last_text(extraction)
    return Answer(text=stated_or_all(said), sentences=lines(chain), limit=end.limit)


def step_bounds(question: Question, settings: ZeroShotChainSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`."""
    chain, answer, words = settings.max_chain_tokens, settings.max_answer_tokens, words_in(OWN)
    return (
        StepBound(kind="reason", times=1, output=chain, words=words, form=AnswerForm.PROMPT),
        StepBound(kind="read", times=1, output=answer, words=words + chain, form=AnswerForm.PROMPT),
    )


SPEC = SystemSpec(
    **description("zero-shot-chain-of-thought"),
    settings=ZeroShotChainSettings,
    open=zero_shot_chain_of_thought,
    needs=always(Needs(words=OWN, capabilities=frozenset({"turns"}))),
    step_bounds=step_bounds,
)
SPECS = (SPEC,)
