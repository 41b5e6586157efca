"""Runs that stop by a rule: their questions are put into a random order, so that the first ones stand for all."""

from collections.abc import Sequence
from random import Random

from cotrail.core.questions import Question
from cotrail.errors import InputError
from cotrail.evaluation.metrics.scorers import scorer
from cotrail.evaluation.metrics.stop_rules import StopRule
from cotrail.models.commands.new_runs import Submission
from cotrail.models.queries.outcomes import unanswered


def in_random_order(questions: Sequence[Question], seed: int) -> tuple[Question, ...]:
    """The questions in an order that this seed draws."""
    return tuple(Random(seed).sample(questions, len(questions)))  # noqa: S311 - no secret


def check_measurable(rule: StopRule, submission: Submission, questions: Sequence[Question]) -> None:
    """Raises InputError where no question has the metric of the rule, whatever the run's answers will be."""
    score = scorer(submission, [rule.metric])
    if all(score(unanswered(each))[rule.metric] is None for each in questions):
        raise InputError(
            f"{rule} can't stop this run: none of its questions has {rule.metric}, since the dataset publishes nothing "
            "to compare with, or the run gives no answers; name another metric or leave `until` out"
        )
