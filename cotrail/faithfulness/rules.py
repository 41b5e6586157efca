"""Rule sets for reading and weighing chains: the paper's and the released code's."""

from collections.abc import Iterable, Sequence

from cotrail.faithfulness import paper, tasks
from cotrail.faithfulness.released import released_facts, released_inference, released_prediction
from cotrail.faithfulness.tasks import ChainRules, Task
from cotrail.faithfulness.weighing import Inference, Vote, infer


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
