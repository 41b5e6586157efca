"""Faithfulness of explanations to the evidence (Rethinking with Retrieval, section 5.3 and table 5).

The metric is that of Honovich et al. (2022), entailment of the facts by the evidence, with the run's own model.
"""

from collections.abc import Iterable
from statistics import fmean

from cotrail.faithfulness.weighing import WeighedChain, Weighing


def explanation_faithfulness(weighing: Weighing) -> float | None:
    """Mean entailment of the facts behind an answer, from 0 to 1; a fact without evidence counts 0.

    The facts are those of a variant's final inference, else those of the chain that represents the answer. None where
    there are none, or where chains voted without evidence.
    """
    if not weighing.function:
        return None
    if weighing.facts:
        return fmean(fact.entailment for fact in weighing.facts)
    return next((_entailment(chain) for chain in weighing.chains if chain.number == weighing.chosen), None)


def chain_faithfulness(weighing: Weighing) -> tuple[float, ...]:
    """The same for each chain that has facts, as if it were the only one: repeated chain-of-thought prompting."""
    return tuple(_known(map(_entailment, weighing.chains))) if weighing.function else ()


def _entailment(chain: WeighedChain) -> float | None:
    return fmean(sentence.entailment for sentence in chain.sentences) if chain.sentences else None


def _known(values: Iterable[float | None]) -> Iterable[float]:
    return (value for value in values if value is not None)
