"""The answer that most chains state (Wang et al., 2022)."""

from collections.abc import Sequence

from cotrail.core.system import Answer
from cotrail.faithfulness.inference import Vote
from cotrail.faithfulness.rules import inferred, prediction, unified
from cotrail.faithfulness.sentences import sentences
from cotrail.faithfulness.weighing import WeighedChain, Weighing
from cotrail.systems.parts.task_settings import SampledSettings


def voted(chains: Sequence[str], settings: SampledSettings) -> Answer:
    """The answer that most of the chains state, with the chain that states it."""
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
