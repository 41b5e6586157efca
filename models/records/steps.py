"""Rows of steps that were never executed. Each is its own outbox entry: recorded first, sent once that is committed.

The message that has a worker carry out a step.
"""

from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import Connection, func, select

from cotrail.core.actions.registry import kind_of
from cotrail.core.history import Step
from cotrail.models.records.runs import RunPlan
from cotrail.models.schema.base import insert_rows
from cotrail.models.schema.states import StepState
from cotrail.models.schema.tables import ASKED, SERVED, questions, steps

LONGEST_ID = 100
"""Characters of a question's id that a message shows."""


class Dispatch(Struct, frozen=True):
    """A message that is due.

    step_id, epoch: all that a worker reads of the message; kind: its kind; sequence: the step's place in its question,
    which gives the message its priority; served: whether the language model of its run is, on which its queue depends;
    asked: whether somebody waits for the answer, so that it goes ahead of all others;
    about: the step in words, for people who watch the queues.
    """

    step_id: int
    epoch: int
    kind: str
    sequence: int = 0
    served: bool = False
    asked: bool = False
    about: str = ""


def described(
    step_id: int,
    epoch: int,
    kind: str,
    sequence: int,
    served: bool,  # noqa: FBT001 - rows come in this order
    asked: bool,  # noqa: FBT001
    run_id: str,
    question: str,
) -> Dispatch:
    """Return a step's message with what it is about: its run's id, its question's id, and its place there from 1.

    Texts stay in PostgreSQL. A question's id comes from a file, so it is written as Python writes strings, and cut.
    """
    about = f"run {run_id}, question {question[:LONGEST_ID]!r}, step {sequence + 1}"
    return Dispatch(step_id, epoch, kind, sequence, served, asked, about)


_COLUMNS = ("run_id", "question_id", "sequence", "kind", "fingerprint", "shared_in", "request", "previous", "state")
_MESSAGE = (steps.c.question_id, steps.c.id, steps.c.epoch, steps.c.kind, steps.c.sequence)

# A scalar subquery rather than a join, see `cotrail.models.schema.base`.
_key = select(questions.c.key).where(questions.c.id == steps.c.question_id).correlate(steps).scalar_subquery()

DESCRIBED = (steps.c.id, steps.c.epoch, steps.c.kind, steps.c.sequence, SERVED, ASKED, steps.c.run_id, _key)
"""The columns of a step's message, in the order of the arguments of `cotrail.models.records.steps.described`."""

_NEW_SENT = insert_rows(steps, *_COLUMNS, sent_at=func.now()).returning(*_MESSAGE)
_NEW_UNSENT = insert_rows(steps, *_COLUMNS).returning(*_MESSAGE)


class NewStep(Struct, frozen=True, kw_only=True):
    """A step to be recorded, its run and question, and the head of what was recorded of the question before.

    question_id: that of the question's row; question: its own, which a person knows.
    """

    run: RunPlan
    question_id: int
    question: str
    step: Step
    previous: str


def record_steps(
    connection: Connection, following: Sequence[NewStep], *, send: bool, state: StepState
) -> dict[int, list[Dispatch]]:
    """Record steps, whose paragraphs and demonstrations are stored already; returns each question's messages.

    send: the caller sends the messages as soon as this is committed; without it, maintenance sends or admits the steps.
    """
    # As where questions end, or where further steps that were yielded together are still under way.
    if not following:
        return {}
    rows = [_row(new) | {"state": state} for new in following]
    descriptions = {new.question_id: (new.run.served, new.run.asked, new.run.id, new.question) for new in following}
    dispatches: dict[int, list[Dispatch]] = defaultdict(list)
    recorded = connection.execute(_NEW_SENT if send else _NEW_UNSENT, {"rows": rows})
    for question_id, step_id, epoch, kind, sequence in recorded:
        dispatches[question_id].append(described(step_id, epoch, kind, sequence, *descriptions[question_id]))
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
