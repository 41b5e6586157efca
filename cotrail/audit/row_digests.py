"""Digests of rows, computed in Python from their columns; they must equal those that PostgreSQL computed."""

import json
from collections.abc import Iterable, Sequence

from cotrail.audit.records import Row, number
from cotrail.audit.sealed_columns import (
    ATTEMPT,
    EXPERIMENT,
    QUESTION,
    QUESTION_OPENED,
    QUESTION_OPENED_SELDOM,
    QUESTION_SELDOM,
    RUN,
    RUN_OPENED,
    STEP,
    STEP_SELDOM,
)
from cotrail.core.digests import digest_of


def step_digest(step: Row, earlier: Sequence[Row]) -> str:
    """The digest of a step that ended after these attempts, in the order of their epochs."""
    rows = [[attempt[name] for name in ATTEMPT] for attempt in earlier]
    edit = step.get(STEP_SELDOM)
    seldom = () if edit is None else (edit,)
    return digest_of([*(step[name] for name in STEP), *seldom, json.dumps(rows, ensure_ascii=False) if rows else None])


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
    judged = question.get(QUESTION_OPENED_SELDOM)
    seldom = () if judged is None else (judged,)
    return digest_of([run_opened, *(question[name] for name in QUESTION_OPENED), *seldom])


def question_digest(question: Row, head: str) -> str:
    """The digest of a question that ended at this head."""
    seldom = [question.get(name) for name in QUESTION_SELDOM]
    return digest_of([*(question[name] for name in QUESTION), *(seldom if any(seldom) else ()), head])


def run_opened(run: Row, experiment: Row | None) -> str:
    """The digest of a run's configuration, together with its experiment's."""
    plan = None
    if experiment is not None:
        plan = json.dumps([experiment[name] for name in EXPERIMENT], ensure_ascii=False)
    return digest_of([plan, *(run[name] for name in RUN_OPENED)])


def run_digest(run: Row, root: str) -> str:
    """The digest of a run; root: the root of the Merkle tree over its questions."""
    return digest_of([*(run[name] for name in RUN), root])
