"""Rows of steps that were never executed. Each is its own outbox entry: recorded first, sent once that is committed."""

from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import Connection, func

from cotrail.core.actions.registry import kind_of
from cotrail.core.history import Step
from models.records.dispatch import Dispatch
from models.records.runs import RunPlan
from models.schema.rows import insert_rows
from models.schema.states import StepState
from models.schema.tables import steps

_COLUMNS = ("run_id", "question_id", "sequence", "kind", "fingerprint", "shared_in", "request", "previous", "state")
_MESSAGE = (steps.c.question_id, steps.c.id, steps.c.epoch, steps.c.kind, steps.c.sequence)

_NEW_SENT = insert_rows(steps, *_COLUMNS, sent_at=func.now()).returning(*_MESSAGE)
_NEW_UNSENT = insert_rows(steps, *_COLUMNS).returning(*_MESSAGE)


class NewStep(Struct, frozen=True, kw_only=True):
    """A step to be recorded, its run and question, and the head of what was recorded of the question before."""

    run: RunPlan
    question_id: int
    step: Step
    previous: str


def record_steps(
    connection: Connection, following: Sequence[NewStep], *, send: bool, state: StepState
) -> dict[int, list[Dispatch]]:
    """Record steps, whose paragraphs and demonstrations are stored already; returns each question's messages.

    send: the caller sends the messages as soon as this is committed; without it, maintenance sends or admits the steps.
    """
    if not following:
        return {}
    rows = [_row(new) | {"state": state} for new in following]
    dispatches: dict[int, list[Dispatch]] = defaultdict(list)
    for question_id, *message in connection.execute(_NEW_SENT if send else _NEW_UNSENT, {"rows": rows}):
        dispatches[question_id].append(Dispatch(*message))
    return dispatches


def _row(new: NewStep) -> dict[str, object]:
    action = new.step.action
    kind = kind_of(action)
    return {
        "run_id": new.run.id,
        "question_id": new.question_id,
        "sequence": new.step.sequence,
        "kind": kind.name,
        "fingerprint": new.step.fingerprint,
        "shared_in": new.run.shared_in,
        "request": kind.request(action),
        "previous": new.previous,
    }
