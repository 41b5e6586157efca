"""Self-consistency (Wang et al., 2022), a baseline of Rethinking with Retrieval (section 4.1)."""

from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.faithfulness.inference import Vote
from cotrail.faithfulness.paper import sentences
from cotrail.faithfulness.rules import inferred, prediction, unified
from cotrail.faithfulness.weighing import WeighedChain, Weighing
from cotrail.systems.parts.chains import sample_chains
from cotrail.systems.parts.reading import Shots
from cotrail.systems.rethinking.settings import SelfConsistencySettings


def self_consistency(question: Question, shots: Shots, settings: SelfConsistencySettings) -> System:
    """Samples chains and takes the answer that most of them state."""
    chains = yield from sample_chains(question, shots, settings)
    task, rules = settings.task, settings.chain_rules
    predictions = unified((prediction(chain, task, rules) for chain in chains), task, rules)
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
    return Answer(text=inference.prediction.strip(), sentences=sentences(chosen), weighing=weighing)
