"""Self-consistency (Wang et al., 2022), a baseline of Rethinking with Retrieval (section 4.1)."""

from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.questions import Question
from cotrail.core.system import System
from cotrail.faithfulness.weighing import Weighing
from cotrail.systems.parts.majority import SampledSettings, most_chains, sample_chains, voted
from cotrail.systems.parts.rules import Limited, StepBound, released_chains
from cotrail.systems.parts.steps import texts_before
from cotrail.systems.spec import Needs, SystemSpec, always, description


def self_consistency(question: Question, shots: Shots, settings: SampledSettings) -> System:
    """Sample chains and take the answer that most of them state."""
    with Limited() as end:
        chains = yield from sample_chains(question, shots, settings)
        return voted(chains, settings)
    return voted(texts_before(end), settings)


def step_bounds(question: Question, settings: SampledSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`."""
    return most_chains(settings)


SPEC = SystemSpec(
    **description("self-consistency"),
    settings=SampledSettings,
    open=self_consistency,
    needs=always(Needs(forms=frozenset({AnswerForm.COT}), samples=True)),
    released=released_chains,
    step_bounds=step_bounds,
    details=Weighing,
)
SPECS = (SPEC,)
