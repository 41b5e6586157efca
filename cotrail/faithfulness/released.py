"""How the released code of Rethinking with Retrieval reads chains and infers from them (HornHehhf/RR).

The files there are `commonsense_utils.py`, `commonsense_inference.py` and their like for the other tasks.
"""

import math
from collections.abc import Mapping, Sequence

from cotrail.faithfulness.inference import Inference, Vote
from cotrail.faithfulness.paper import VERDICTS, Task, all_sentences
from cotrail.faithfulness.weighing import WeighedPrediction

UNCLEAR = "unclear"
"""What a chain predicts that states neither of a task's verdicts, and what a tie of yes and no comes to."""

_STATING = ("the answer is ", "the answer is probably ", "the answer is most likely ")
_CONCLUDING = ("thus", "therefore", "so ")
_ANSWERING = ("no,", "yes,", "no.", "yes.")


def released_facts(chain: str, task: Task) -> tuple[str, ...]:
    """The sentences of the whole text without those that conclude: the model's further questions are among them."""
    return tuple(sentence for sentence in all_sentences(chain) if not _concludes(sentence.lower(), task))


def released_prediction(chain: str, task: Task) -> str:
    """What the chain predicts; empty only where a temporal one holds no sentence.

    Temporal: all that follows the first "answer is", as it stands, else the last sentence. Otherwise yes before no and
    true before false, wherever the text says so, even as the beginning of another word ("the answer is nothing").
    """
    line = chain.replace("\n", "").strip()
    if task == "temporal":
        _, mark, behind = line.partition("answer is")
        return behind if mark else next(reversed(all_sentences(line)), "")
    said = line.lower()
    for verdict in VERDICTS[task]:
        if said == verdict or said.startswith((f"{verdict},", f"{verdict}.")):
            return verdict
        if any(f"{stating}{verdict}" in said for stating in _STATING):
            return verdict
    return UNCLEAR


def released_inference(votes: Sequence[Vote], task: Task, *, voting: bool) -> Inference:
    """The prediction with the greatest weight, the earliest of equals.

    For yes or no the two are compared, each from 0 on, so that one which no chain states beats one below 0; a tie is
    unclear. Elsewhere whatever chains state is compared, "unclear" too. Without voting, which the released code has in
    a comment alone, a prediction weighs as much as its most faithful chain.
    """
    compared = VERDICTS[task] if task == "commonsense" else ()
    chains: dict[str, list[int]] = {verdict: [] for verdict in compared}
    for number, vote in enumerate(votes):
        chains.setdefault(vote.prediction, []).append(number)
    f = [vote.faithfulness for vote in votes]
    start = [0.0] if compared else []
    weigh = math.fsum if voting else max
    weights = {each: weigh([*start, *(f[number] for number in numbers)]) for each, numbers in chains.items()}
    ranked = sorted(chains, key=weights.__getitem__, reverse=True)
    best = _decided(weights) if compared else next(iter(ranked), "")
    return Inference(
        prediction=best,
        chosen=max(chains.get(best, ()), key=f.__getitem__, default=None),
        predictions=tuple(
            WeighedPrediction(prediction=each, weight=weights.get(each, 0.0), chains=tuple(chains.get(each, ())))
            for each in dict.fromkeys([best, *ranked] if votes else ())
        ),
    )


def _decided(weights: Mapping[str, float]) -> str:
    yes, no = weights["yes"], weights["no"]
    return UNCLEAR if yes == no else "yes" if yes > no else "no"


def _concludes(sentence: str, task: Task) -> bool:
    if sentence.startswith(_CONCLUDING):
        return True
    if task == "commonsense":
        return sentence.startswith(_ANSWERING) or sentence in VERDICTS[task]
    return "answer is" in sentence
