"""By which rules chains are read and weighed."""

from collections.abc import Iterable, Sequence
from typing import Literal

from cotrail.faithfulness import paper
from cotrail.faithfulness.inference import Inference, Vote, infer
from cotrail.faithfulness.paper import Task
from cotrail.faithfulness.released import released_facts, released_inference, released_prediction

ChainRules = Literal["paper", "released", "words"]
"""The `paper`'s, as far as it has any; those of the authors' `released` code; or `words`, as the first versions of the
systems read chains: the paper's, but that "the answer is no one" counts as no."""


def facts(chain: str, task: Task, rules: ChainRules) -> tuple[str, ...]:
    """The chain's supporting facts."""
    return released_facts(chain, task) if rules == "released" else paper.facts(chain, task)


def prediction(chain: str, task: Task, rules: ChainRules) -> str:
    """What the chain predicts; empty where it predicts nothing."""
    if rules == "released":
        return released_prediction(chain, task)
    return paper.prediction(chain, task, whole=rules == "paper")


def unified(predictions: Iterable[str], task: Task, rules: ChainRules) -> tuple[str, ...]:
    """Each prediction in the form that came first of those that count as one with it; `released`, as it stands."""
    return tuple(predictions) if rules == "released" else paper.unified(predictions, task)


def inferred(votes: Sequence[Vote], task: Task, rules: ChainRules, *, voting: bool) -> Inference:
    """The prediction that the votes come to."""
    return released_inference(votes, task, voting=voting) if rules == "released" else infer(votes, voting=voting)
