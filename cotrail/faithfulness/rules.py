"""Rule sets for reading and weighing chains, and weighing by them: the paper's and the released code's."""

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from cotrail.faithfulness import paper, tasks, weighing
from cotrail.faithfulness.paper import all_sentences
from cotrail.faithfulness.tasks import VERDICTS, ChainRules, Task
from cotrail.faithfulness.weighing import Inference, Vote, WeighedPrediction, infer


def facts(chain: str, task: Task, rules: ChainRules) -> tuple[str, ...]:
    """The chain's supporting facts."""
    return released_facts(chain, task) if rules == "released" else paper.facts(chain, task)


def prediction(chain: str, task: Task, rules: ChainRules) -> str:
    """The chain's prediction; empty where it makes none."""
    return released_prediction(chain, task) if rules == "released" else paper.prediction(chain, task)


def unified(predictions: Iterable[str], task: Task, rules: ChainRules) -> tuple[str, ...]:
    """Each prediction in the form that came first among those that count as one with it; `released` changes none."""
    return tuple(predictions) if rules == "released" else tasks.unified(predictions, task)


def inferred(votes: Sequence[Vote], task: Task, rules: ChainRules, *, voting: bool) -> Inference:
    """The final prediction, given a vote for each chain."""
    return released_inference(votes, task, voting=voting) if rules == "released" else infer(votes, voting=voting)


UNCLEAR = "unclear"
"""The prediction of a chain that states neither of a task's verdicts, and of a tie between yes and no."""

_STATING = ("the answer is ", "the answer is probably ", "the answer is most likely ")
_CONCLUDING = ("thus", "therefore", "so ")
_ANSWERING = ("no,", "yes,", "no.", "yes.")


def released_facts(chain: str, task: Task) -> tuple[str, ...]:
    """The sentences of the whole text without those that conclude; the text includes the model's further questions."""
    return tuple(sentence for sentence in all_sentences(chain) if not _concludes(sentence.lower(), task))


def released_prediction(chain: str, task: Task) -> str:
    """The chain's prediction; empty only for a temporal chain without a sentence.

    Temporal: everything after the first "answer is", unchanged, else the last sentence. Otherwise yes before no and
    true before false, wherever the text states it, even as the beginning of another word ("the answer is nothing").
    """
    line = chain.replace("\n", "").strip()
    if task == "temporal":
        _, mark, behind = line.partition("answer is")
        return behind if mark else next(reversed(all_sentences(line)), "")
    lowered = line.lower()
    for verdict in VERDICTS[task]:
        if lowered == verdict or lowered.startswith((f"{verdict},", f"{verdict}.")):
            return verdict
        if any(f"{stating}{verdict}" in lowered for stating in _STATING):
            return verdict
    return UNCLEAR


def released_inference(votes: Sequence[Vote], task: Task, *, voting: bool) -> Inference:
    """The prediction with the greatest weight, the earliest of equals.

    Commonsense compares yes with no, whose sums start at 0, so that a verdict which no chain states beats a negative
    one; a tie is unclear. Other tasks compare all predictions, "unclear" too. Without voting, which the released code
    has only in a comment, a prediction weighs as much as its most faithful chain.
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
            sentences=tuple(
                weighing.WeighedSentence(
                    text=fact.text,
                    evidence=fact.evidence,
                    score=weighing.fact_score(fact.scores, function, thresholds),
                    **asdict(fact.scores),
                )
                for fact in chain.facts
            ),
        )
        for number, chain in enumerate(chains)
    )
    votes = [weighing.Vote(chain.prediction, chain.faithfulness) for chain in weighed]
    inference = inferred(votes, task, rules, voting=voting)
    return weighing.Weighing(
        function=function, chains=weighed, predictions=inference.predictions, chosen=inference.chosen
    )
