"""Self-consistency (Wang et al., 2022), a baseline of Rethinking with Retrieval (section 4.1)."""

from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.faithfulness.inference import Vote
from cotrail.faithfulness.rules import inferred, prediction, unified
from cotrail.faithfulness.sentences import sentences
from cotrail.faithfulness.weighing import WeighedChain, Weighing
from cotrail.systems.parts.chains import sample_chains
from cotrail.systems.parts.rules import released_chains
from cotrail.systems.parts.task_settings import DEFAULTS_1, SampledSettings
from cotrail.systems.spec import Needs, SystemSpec


def self_consistency(question: Question, shots: Shots, settings: SampledSettings) -> System:
    """Sample chains and take the answer that most of them state."""
    chains = yield from sample_chains(question, shots, settings)
    task, rules = settings.task, settings.chain_rules
    predictions = unified((prediction(chain, task, rules) for chain in chains), task, rules)
    # With the same faithfulness for every chain, faithful inference is a majority vote.
    inference = inferred([Vote(each, faithfulness=1.0) for each in predictions], task, rules, voting=True)
    weighing = Weighing(
        function=0,
        chains=tuple(
            WeighedChain(number=number, text=chain, prediction=each, faithfulness=1.0, sentences=())
            for number, (chain, each) in enumerate(zip(chains, predictions, strict=True))
        ),
        predictions=inference.predictions,
        chosen=inference.chosen,
    )
    chosen = "" if inference.chosen is None else chains[inference.chosen]
    return Answer(text=inference.prediction.strip(), sentences=sentences(chosen), details=weighing)


def needs(_: SampledSettings) -> Needs:
    """Demonstrations of chains, of which it samples several."""
    return Needs(forms=frozenset({AnswerForm.COT}), samples=True)


SPEC = SystemSpec(
    name="self-consistency",
    version=2,
    title="Self-consistency",
    paper="Wang et al., 2022, https://arxiv.org/abs/2203.11171",
    settings=SampledSettings,
    open=self_consistency,
    needs=needs,
    released=released_chains,
    details=Weighing,
)

# Version 1 had every prompt in IRCoT's layout and read texts of one line.
SPECS = (SPEC.former(1, **DEFAULTS_1), SPEC)
