"""The three tasks of Rethinking with Retrieval (sections 4.2 to 4.4), and when two predictions count as one."""

from collections.abc import Iterable
from typing import Literal

from cotrail.common.answer_normalization import normalized

Task = Literal["commonsense", "temporal", "tabular"]
"""Commonsense asks for yes or no (StrategyQA), temporal for a text (TempQuestions), tabular for true or false
(INFOTABS)."""

ChainRules = Literal["paper", "released"]
"""The rules of the `paper`, as far as it states any, or those of the authors' `released` code."""

VERDICTS: dict[Task, tuple[str, ...]] = {"commonsense": ("yes", "no"), "temporal": (), "tabular": ("true", "false")}
"""The possible predictions; none are listed where a prediction is free text."""


def same(prediction: str, task: Task) -> str:
    """Key under which predictions count as one; empty only for the empty prediction.

    Temporal predictions are compared as SQuAD does, without case, punctuation and articles.
    """
    # A prediction of nothing but articles and punctuation stays as it is: it must not count as an empty one.
    return (task == "temporal" and normalized(prediction)) or prediction


def unified(predictions: Iterable[str], task: Task) -> tuple[str, ...]:
    """Each prediction in the form that came first among those that count as one with it."""
    first: dict[str, str] = {}
    return tuple(first.setdefault(same(prediction, task), prediction) for prediction in predictions)
