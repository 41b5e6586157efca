"""Digests of rows, computed in Python from their columns; they must equal those that PostgreSQL computed."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from cotrail.audit.records import ATTEMPT, EXPERIMENT, QUESTION, QUESTION_OPENED, RUN, RUN_OPENED, STEP, Row, number
from cotrail.core.results import digest_of


def step_digest(step: Row, earlier: Sequence[Row]) -> str:
    """The digest of a step that ended after these attempts, in the order of their epochs."""
    rows = [[attempt[name] for name in ATTEMPT] for attempt in earlier]
    return digest_of([*(step[name] for name in STEP), json.dumps(rows, ensure_ascii=False) if rows else None])


def earlier_attempts(step: Row, attempts: Iterable[Row]) -> list[Row]:
    """The attempts that a step's digest covers: all before the one that ended the step.

    The last attempt ends together with the step and repeats the step's own columns, so it is checked by those.
    """
    epoch = number(step, "epoch")
    return [
        attempt
        for attempt in attempts
        if 0 < number(attempt, "epoch") < epoch
        or (number(attempt, "epoch") == epoch and attempt["outcome"] != step["state"])
    ]


def question_opened(question: Row, run_opened: str) -> str:
    """The digest of a question as it was submitted."""
    return digest_of([run_opened, *(question[name] for name in QUESTION_OPENED)])


def question_digest(question: Row, head: str) -> str:
    """The digest of a question that ended at this head."""
    return digest_of([*(question[name] for name in QUESTION), head])


def run_opened(run: Row, experiment: Row | None) -> str:
    """The digest of a run's configuration, together with its experiment's."""
    plan = None
    if experiment is not None:
        plan = json.dumps([experiment[name] for name in EXPERIMENT], ensure_ascii=False)
    return digest_of([plan, *(run[name] for name in RUN_OPENED)])


def run_digest(run: Row, root: str) -> str:
    """The digest of a run; root: the root of the Merkle tree over its questions."""
    return digest_of([*(run[name] for name in RUN), root])


# Explanation of a digest that doesn't match: the column that was changed, found by trying values of other rows.

RowDigest = Callable[[Row], str]

HASHING_BUDGET, LEAST_CHARGE = 2**29, 4096
"""Budget of characters to hash, worth a few seconds, and the minimum charge for one guess.

Without a budget, a forged bundle could make explaining its findings take hours."""


class GuessBudget:
    """Remaining budget for guessing the original values of changed rows."""

    def __init__(self) -> None:
        self._left = HASHING_BUDGET

    def may(self, row: Row) -> bool:
        """Charge one digest of this row; return whether the budget allows it."""
        self._left -= LEAST_CHARGE + sum(len(value) for value in row.values() if value is not None)
        return self._left > 0


def changed_column(
    row: Row, recorded: str, digest: RowDigest, values: Mapping[str, Iterable[str | None]], guesses: GuessBudget
) -> tuple[str, str | None] | None:
    """Find the column and its original value with which the row has the recorded digest; None where none explains it.

    values: candidate values of each column, from other rows.
    """
    for name, candidates in values.items():
        for value in candidates:
            if value == row.get(name):
                continue
            if not guesses.may(row):
                return None
            if digest({**row, name: value}) == recorded:
                return name, value
    return None
