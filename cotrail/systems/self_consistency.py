"""Self-consistency (Wang et al., 2022), a baseline of Rethinking with Retrieval (section 4.1)."""

from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.questions import Question
from cotrail.core.system import System
from cotrail.faithfulness.weighing import Weighing
from cotrail.systems.parts.majority import most_chains, sample_chains, voted
from cotrail.systems.parts.rules import Limited, StepBound, released_chains
from cotrail.systems.parts.steps import texts_before
from cotrail.systems.parts.tasks import SampledSettings
from cotrail.systems.spec import Needs, SystemSpec


def self_consistency(question: Question, shots: Shots, settings: SampledSettings) -> System:
    """Sample chains and take the answer that most of them state."""
    with Limited() as end:
        chains = yield from sample_chains(question, shots, settings)
        return voted(chains, settings)
    return voted(texts_before(end), settings)


def run_needs(_: SampledSettings) -> Needs:
    """Demonstrations of chains, of which it samples several."""
    return Needs(forms=frozenset({AnswerForm.COT}), samples=True)


def step_bounds(question: Question, settings: SampledSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`."""
    return most_chains(settings)


SPEC = SystemSpec(
    name="self-consistency",
    version=1,
    title="Self-consistency",
    paper="Wang et al., 2022, https://arxiv.org/abs/2203.11171",
    settings=SampledSettings,
    open=self_consistency,
    needs=run_needs,
    released=released_chains,
    step_bounds=step_bounds,
    details=Weighing,
)
SPECS = (SPEC,)
