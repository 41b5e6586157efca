"""Weighing of chains of thought whose supporting facts have scores (Rethinking with Retrieval, section 3)."""

from collections.abc import Sequence

from msgspec import Struct

from cotrail.faithfulness import weighing
from cotrail.faithfulness.rules import inferred, unified
from cotrail.faithfulness.tasks import ChainRules, Task


class ScoredFact(Struct, frozen=True, kw_only=True):
    """A supporting fact; `evidence` is the digest of the paragraph that it was compared with, if there was one."""

    text: str
    scores: weighing.Scores
    evidence: str | None = None


class ScoredChain(Struct, frozen=True, kw_only=True):
    """A chain; `prediction` is empty where it states none."""

    text: str
    prediction: str
    facts: tuple[ScoredFact, ...]


def weigh(
    chains: Sequence[ScoredChain],
    task: Task,
    *,
    function: weighing.Function,
    thresholds: weighing.Thresholds,
    voting: bool,
    rules: ChainRules = "paper",
) -> weighing.Weighing:
    """Weigh the chains; the first of the weighed predictions is the final one (see `inferred`).

    Predictions that count as one appear in the form of the first chain that states them.
    """
    predictions = unified((chain.prediction for chain in chains), task, rules)
    weighed = tuple(
        weighing.WeighedChain(
            number=number,
            text=chain.text,
            prediction=predictions[number],
            faithfulness=weighing.faithfulness((fact.scores for fact in chain.facts), function, thresholds),
            sentences=tuple(_weighed(fact, function, thresholds) for fact in chain.facts),
        )
        for number, chain in enumerate(chains)
    )
    votes = [weighing.Vote(chain.prediction, chain.faithfulness) for chain in weighed]
    inference = inferred(votes, task, rules, voting=voting)
    return weighing.Weighing(
        function=function, chains=weighed, predictions=inference.predictions, chosen=inference.chosen
    )


def _weighed(
    fact: ScoredFact, function: weighing.Function, thresholds: weighing.Thresholds
) -> weighing.WeighedSentence:
    return weighing.WeighedSentence(
        text=fact.text,
        evidence=fact.evidence,
        similarity=fact.scores.similarity,
        entailment=fact.scores.entailment,
        contradiction=fact.scores.contradiction,
        score=weighing.fact_score(fact.scores, function, thresholds),
    )
