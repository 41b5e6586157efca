"""How faithful an explanation is to the evidence (Rethinking with Retrieval, section 5.3 and table 5).

The metric is that of Honovich et al. (2022), with the run's own model: how far the evidence entails the facts.
"""

from collections.abc import Iterable
from statistics import fmean

from cotrail.faithfulness.weighing import WeighedChain, Weighing


def explanation_faithfulness(weighing: Weighing) -> float | None:
    """The mean entailment of the facts behind an answer, from 0 to 1; a fact without evidence counts 0.

    The facts are those of a variant's final inference, or else those of the chain that stands for the answer. None
    where there are none, or where chains merely voted, without evidence.
    """
    if not weighing.function:
        return None
    if weighing.facts:
        return fmean(fact.entailment for fact in weighing.facts)
    return next((_entailment(chain) for chain in weighing.chains if chain.number == weighing.chosen), None)


def chain_faithfulness(weighing: Weighing) -> tuple[float, ...]:
    """The same of each chain that has facts, as though it were alone: of chain-of-thought prompting, many times."""
    return tuple(_known(map(_entailment, weighing.chains))) if weighing.function else ()


def _entailment(chain: WeighedChain) -> float | None:
    return fmean(sentence.entailment for sentence in chain.sentences) if chain.sentences else None


def _known(values: Iterable[float | None]) -> Iterable[float]:
    return (value for value in values if value is not None)
