"""The record of how an answer was weighed: each chain, each sentence with its evidence, each prediction's weight."""

from msgspec import Struct


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
