"""Faithful inference: the prediction that evidence supports best (Rethinking with Retrieval, equation 1)."""

import math
from collections.abc import Sequence

from msgspec import Struct

from cotrail.faithfulness.weighing import WeighedPrediction


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
