"""What ended a question: one short text beside every answer, so that tables can count and compare it."""

from collections.abc import Mapping

from cotrail.core.history import Failed, Finished
from cotrail.core.results import Failure

ANSWER = "answer"
LIMIT, FAILURE = "limit: ", "failure: "
"""What precedes the name of a limit, and the class of an error."""
UNTIL = "until: "
"""What precedes the rule by which a run stopped before it asked the question."""


def ended_by(outcome: Finished | Failed) -> str:
    """`answer` where the system came to its end, `limit: sentences` where a limit ended it, `failure: StepError`."""
    if isinstance(outcome, Failed):
        return by_failure(outcome.failure)
    return f"{LIMIT}{outcome.answer.limit}" if outcome.answer.limit else ANSWER


def by_failure(failure: Failure) -> str:
    """The same of a question that failed."""
    return f"{FAILURE}{failure.type}"


def shown_ends(ends: Mapping[str, int]) -> str:
    """What ended questions, by their number: `16 answer, 3 limit: sentences, 1 failure: StepError`."""
    return ", ".join(f"{number:,} {end}" for end, number in ends.items())
