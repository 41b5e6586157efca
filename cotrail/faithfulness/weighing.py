"""How an answer is weighed, by the paper's rules or the released code's, and the record of it."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from cotrail.core.questions import Paragraph
from cotrail.faithfulness.tasks import Task


class WeighedSentence(Struct, frozen=True, kw_only=True):
    """A supporting fact of a chain with its scores, as in appendix A.2 of Rethinking with Retrieval.

    evidence: the digest of the most similar paragraph found; None where nothing was found.
    similarity: M(s), from -1 to 1; entailment, contradiction: E(s) and C(s), from 0 to 1.
    score: the term that the sentence adds to its chain's faithfulness.
    """

    text: str
    evidence: str | None
    similarity: float
    entailment: float
    contradiction: float
    score: float


class WeighedChain(Struct, frozen=True, kw_only=True):
    """A sampled chain of thought.

    number: of the sample, from 0; prediction: the answer that the chain states, empty where it states none.
    faithfulness: f(R), the sum over its sentences.
    """

    number: int
    text: str
    prediction: str
    faithfulness: float
    sentences: tuple[WeighedSentence, ...]


class WeighedPrediction(Struct, frozen=True, kw_only=True):
    """An answer that chains state, and the numbers of those chains.

    weight: the sum of their f(R) by equation (1); the greatest f(R) without voting.
    """

    prediction: str
    weight: float
    chains: tuple[int, ...]


class ChosenFact(Struct, frozen=True, kw_only=True):
    """A supporting fact of a variant's final inference, and the fact of the best chain that it stands for.

    origin: `kept`, `selected` from another chain of the same topic (variant I), or `generated` (variant II).
    """

    text: str
    replaces: str
    origin: str
    evidence: str | None = None
    entailment: float
    contradiction: float


class Weighing(Struct, frozen=True, kw_only=True):
    """Details of an answer that was chosen among those of several chains.

    function: which of the faithfulness functions (1) to (3); 0 where chains only vote (self-consistency).
    predictions: the heaviest first; chosen: the number of the chain that stands for the answer.
    facts: the supporting facts of a variant's final inference; empty for the basic approach.
    """

    function: int
    chains: tuple[WeighedChain, ...]
    predictions: tuple[WeighedPrediction, ...]
    chosen: int | None = None
    facts: tuple[ChosenFact, ...] = ()


class Vote(Struct, frozen=True):
    """A chain's prediction, empty where it states none, and its faithfulness f(R)."""

    prediction: str
    faithfulness: float


class Inference(Struct, frozen=True, kw_only=True):
    """The final prediction, empty where no chain states one.

    chosen: the number of the chain that represents it; None where there is none.
    predictions: all that the chains state, the best first.
    """

    prediction: str
    chosen: int | None
    predictions: tuple[WeighedPrediction, ...]


def infer(votes: Sequence[Vote], *, voting: bool) -> Inference:
    """The prediction with the greatest weight, given a vote for each chain in their order.

    With voting, a prediction's weight is the sum of f(R) over its chains (equation 1); without, it is the greatest f(R)
    among them, so that the most faithful chain decides (section 5.3). Either may be negative. Chains that state nothing
    carry no weight. With f(R) = 1 for every chain this is self-consistency.

    The most faithful chain of a prediction represents it, the earliest of equals. The paper doesn't say how ties are
    broken: here more chains win, then the more faithful representative, then the earlier one.
    """
    chains: dict[str, list[int]] = {}
    for number, vote in enumerate(votes):
        if vote.prediction:
            chains.setdefault(vote.prediction, []).append(number)
    f = [vote.faithfulness for vote in votes]
    # fsum rounds once, so that chains of the same faithfulness tie in any order.
    best = {prediction: max(numbers, key=f.__getitem__) for prediction, numbers in chains.items()}
    weights = {
        prediction: math.fsum(f[number] for number in numbers) if voting else f[best[prediction]]
        for prediction, numbers in chains.items()
    }

    def rank(prediction: str) -> tuple[float, int, float, int]:
        chain = best[prediction]
        return weights[prediction], len(chains[prediction]), f[chain], -chain

    ranked = sorted(chains, key=rank, reverse=True)
    return Inference(
        prediction=ranked[0] if ranked else "",
        chosen=best[ranked[0]] if ranked else None,
        predictions=tuple(
            WeighedPrediction(prediction=each, weight=weights[each], chains=tuple(chains[each])) for each in ranked
        ),
    )


# Faithfulness functions: scores of facts by their evidence, and f(R) of a chain (Rethinking with Retrieval, A.2).
#
# M(s) is a sentence's similarity to its evidence; E(s) and C(s) are the probabilities that the evidence entails and
# contradicts it.

Function = Literal[1, 2, 3]
"""The faithfulness functions of the appendix: (1) takes the similarity where it is high and the entailment elsewhere,
less the contradiction; (2) leaves contradiction out; (3) counts only clear entailments and contradictions."""

FUNCTIONS: dict[Task, Function] = {"commonsense": 1, "temporal": 2, "tabular": 1}
"""Each task's faithfulness function (appendix A.2)."""


class Scores(Struct, frozen=True, kw_only=True):
    """A sentence's scores: M(s) from -1 to 1, E(s) and C(s) from 0 to 1."""

    similarity: float
    entailment: float
    contradiction: float


NO_EVIDENCE = Scores(similarity=-1.0, entailment=0.0, contradiction=0.0)
"""The scores of a sentence for which nothing was found, as in the released code."""


class Evidence(Struct, frozen=True, kw_only=True):
    """The paragraph most similar to a fact among all that were found for it, and the fact's scores by it.

    paragraph: None where nothing was found.
    """

    paragraph: Paragraph | None = None
    scores: Scores = NO_EVIDENCE

    @property
    def digest(self) -> str | None:
        """The digest of the paragraph, by which records refer to it."""
        return self.paragraph.digest if self.paragraph else None


class Thresholds(Struct, frozen=True, kw_only=True):
    """The thresholds T_m, T_e and T_c; a score equal to its threshold has reached it."""

    similarity: float = 0.5
    entailment: float = 0.6
    contradiction: float = 0.99


def fact_score(scores: Scores, function: Function, thresholds: Thresholds) -> float:
    """The term that one sentence adds to its chain's faithfulness."""
    match function:
        case 1:
            is_similar = scores.similarity >= thresholds.similarity
            return (scores.similarity if is_similar else scores.entailment) - scores.contradiction
        case 2:
            return scores.similarity + scores.entailment
        case 3:
            is_entailed = scores.entailment >= thresholds.entailment
            is_contradicted = scores.contradiction >= thresholds.contradiction
            return is_entailed * scores.entailment - is_contradicted * scores.contradiction


def faithfulness(facts: Iterable[Scores], function: Function, thresholds: Thresholds) -> float:
    """Faithfulness f(R) of a chain, from the scores of its supporting facts; 0 where it has none."""
    # fsum rounds once, so that the sum doesn't depend on the order of the sentences.
    return math.fsum(fact_score(scores, function, thresholds) for scores in facts)
