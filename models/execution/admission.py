"""Admission control: which waiting questions may begin, so that queues stay short and runs share the workers fairly.

Each run may have a window of steps under way, the same for all runs whatever their size. Runs of a lower priority wait
while a higher one has questions waiting, unless no step is being executed at all. A question that somebody asked and
waits for begins at once. A run that one cause blocks begins no further questions (`cotrail.models.records.blockage`).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, zip_longest

from msgspec import Struct
from sqlalchemy import BigInteger, Connection, column, exists, func, select, true, union_all, update

from cotrail.models.records.blockage import STOPPED
from cotrail.models.records.dispatch import Dispatch, described
from cotrail.models.records.steps import DESCRIBED
from cotrail.models.schema.conditions import QUESTION_OPEN
from cotrail.models.schema.rows import recordset
from cotrail.models.schema.states import DesiredState, StepState
from cotrail.models.schema.tables import runs, steps

LEAST_WINDOW = 16
"""The smallest window of a run: how many of its steps may be under way."""

STEPS_PER_EXECUTION = 4
"""The number of steps that may be under way for each that a worker is executing: the others wait in the queues, so
that no worker runs out of work."""


class Waiting(Struct, frozen=True):
    """An active run some of whose questions wait to be admitted."""

    run_id: str
    priority: int
    asked: bool = False


class UnderWay(Struct, frozen=True):
    """Steps under way: how many each run has, and how many of all these are being executed."""

    by_run: Mapping[str, int]
    running: int


_of_run = steps.c.run_id == runs.c.id
_WAITING = (
    select(runs.c.id, runs.c.priority, runs.c.asked)
    .where(
        runs.c.desired_state == DesiredState.ACTIVE,
        runs.c.digest.is_(None),  # so that an index leaves out the runs that have ended
        exists().where(_of_run, steps.c.state == StepState.WAITING),
        ~STOPPED,
    )
    .order_by(runs.c.created_at, runs.c.id)
)
# Steps of blocked questions don't count: they don't move until a person acts, and would fill the window for good.
_begun = select(steps.c.run_id, steps.c.state).where(QUESTION_OPEN)
# In three parts, as each has a partial index of its own.
_open = union_all(
    _begun.where(steps.c.state == StepState.READY, steps.c.sent_at.is_(None)),
    _begun.where(steps.c.state == StepState.READY, steps.c.sent_at.is_not(None)),
    _begun.where(steps.c.state == StepState.RUNNING),
).subquery("open")
_UNDER_WAY = select(_open.c.run_id, func.count(), func.count().filter(_open.c.state == StepState.RUNNING)).group_by(
    _open.c.run_id
)

_rooms = recordset(steps.c.run_id, column("room", BigInteger))
_first = (
    select(steps.c.id)
    .where(steps.c.run_id == _rooms.c.run_id, steps.c.state == StepState.WAITING)
    .order_by(steps.c.id)
    .limit(_rooms.c.room)
    .with_for_update(skip_locked=True)
    .lateral("first")
)
_admitted = select(_first.c.id).select_from(_rooms.join(_first, onclause=true())).subquery("admitted")
_ADMIT = (
    update(steps)
    .where(steps.c.id == _admitted.c.id)
    .values(state=StepState.READY, sent_at=func.now())
    .returning(*DESCRIBED)
)


def admit(connection: Connection, exhausted: Collection[str] = ()) -> list[Dispatch]:
    """Make as many waiting steps ready as may begin now; the caller sends the messages returned.

    exhausted: runs whose budgets are used up or whose rules are met, of which none begins.
    """
    waiting = [Waiting(*row) for row in connection.execute(_WAITING) if row.id not in exhausted]
    if not waiting:
        return []
    runs_under_way = connection.execute(_UNDER_WAY).all()
    by_run = {run_id: under_way for run_id, under_way, _ in runs_under_way}
    rooms = share(waiting, UnderWay(by_run, sum(running for *_, running in runs_under_way)))
    if not rooms:
        return []
    rows = [{"run_id": run_id, "room": room} for run_id, room in rooms.items()]
    admitted = connection.execute(_ADMIT, {"rows": rows})
    messages: dict[str, list[Dispatch]] = defaultdict(list)
    for row in sorted(admitted, key=lambda row: row.id):
        messages[row.run_id].append(described(*row))
    # One of each run in turn, so that no run is served before the others.
    return [message for message in chain(*zip_longest(*messages.values())) if message is not None]


def share(waiting: Sequence[Waiting], under_way: UnderWay) -> dict[str, int]:
    """Return how many further steps of each run may begin; runs that may begin none are left out."""
    at_once = {run.run_id: LEAST_WINDOW for run in waiting if run.asked}
    others = [run for run in waiting if not run.asked]
    if not others:
        return at_once
    highest = max(run.priority for run in others)
    chosen = others if not under_way.running else [run for run in others if run.priority == highest]
    window = LEAST_WINDOW + STEPS_PER_EXECUTION * under_way.running // len(chosen)
    rooms = {run.run_id: window - under_way.by_run.get(run.run_id, 0) for run in chosen}
    return at_once | {run_id: room for run_id, room in rooms.items() if room > 0}
