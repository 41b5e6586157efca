"""Admission control: which waiting questions may begin, so that queues stay short and runs share the workers fairly.

Each run may have a window of steps under way, the same for all runs whatever their size. Runs of a lower priority wait
while a higher one has questions waiting, unless no step is being executed at all. Of a run, questions that have begun
and wait again, since they were retried or their budget was raised, come before those that never began. A question that
somebody asked and waits for begins at once. A run that one cause blocks begins no further questions
(`cotrail.models.records.budgets`). Of a run with a budget only as many questions are under way as it has room for
(`Budgets.questions_left`).
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from itertools import chain, zip_longest
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec import Struct
from psycopg.errors import SerializationFailure
from sqlalchemy.exc import OperationalError

from cotrail.core.budgets import NO_BUDGET, Budgets, Consumed
from cotrail.models.records.budgets import CURRENT, STOPPED
from cotrail.models.records.runs import BUDGETS
from cotrail.models.records.steps import DESCRIBED, Dispatch, described
from cotrail.models.schema.base import recordset
from cotrail.models.schema.seals import run_digest
from cotrail.models.schema.states import UNENDED_QUESTIONS, DesiredState, StepState
from cotrail.models.schema.tables import QUESTION_OPEN, questions, run_consumption, runs, steps

LEAST_WINDOW = 16
"""The smallest window of a run: how many of its steps may be under way."""

LATELY = 100
"""How many of the questions that ended last say what one takes."""

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
    sa.select(runs.c.id, runs.c.priority, runs.c.asked)
    .where(
        runs.c.desired_state == DesiredState.ACTIVE,
        runs.c.digest.is_(None),  # so that an index leaves out the runs that have ended
        sa.exists().where(_of_run, steps.c.state == StepState.WAITING),
        ~STOPPED,
    )
    .order_by(runs.c.created_at, runs.c.id)
)
# Steps of blocked questions don't count: they don't move until a person acts, and would fill the window for good.
_begun = sa.select(steps.c.run_id, steps.c.question_id, steps.c.state).where(QUESTION_OPEN)
# In parts, as each has a partial index of its own.
_parts = (
    _begun.where(steps.c.state == StepState.READY, steps.c.sent_at.is_(None)),
    _begun.where(steps.c.state == StepState.READY, steps.c.sent_at.is_not(None)),
    _begun.where(steps.c.state == StepState.RUNNING),
)
_open = sa.union_all(*_parts).subquery("open")
_UNDER_WAY = sa.select(
    _open.c.run_id, sa.func.count(), sa.func.count().filter(_open.c.state == StepState.RUNNING)
).group_by(_open.c.run_id)

_rooms = recordset(steps.c.run_id, sa.column("room", sa.BigInteger))


def _next(run: sa.ColumnElement[str], room: sa.ColumnElement[int], *, lock: bool) -> sa.Select[Any]:
    """Select the steps of a run to be admitted next, those of questions that have begun first.

    A question that continues waits with a step that is older or newer than those of all questions that never began: it
    was admitted before them, or recorded since. So of any number of waiting steps only the ends of the index are read.
    """
    columns = steps.c.id, steps.c.question_id, steps.c.epoch
    waiting = sa.select(*columns).where(steps.c.run_id == run, steps.c.state == StepState.WAITING).correlate(_rooms)
    ends = (waiting.order_by(order).limit(room) for order in (steps.c.id, steps.c.id.desc()))
    locked = (end.with_for_update(skip_locked=True) if lock else end for end in ends)
    near = sa.union(*(sa.select(end.subquery()) for end in locked)).subquery("near")
    # With LIMIT, for which the planner looks at one question's steps and never at all steps.
    of_question = steps.c.question_id == near.c.question_id, steps.c.state != StepState.WAITING
    other = sa.select(steps.c.id).where(*of_question).limit(1).correlate(near).scalar_subquery()
    has_begun = sa.or_(near.c.epoch > 0, other.is_not(None))
    return sa.select(near.c.id, near.c.question_id).order_by(has_begun.desc(), near.c.id).limit(room)


_first = _next(_rooms.c.run_id, _rooms.c.room, lock=True).lateral("first")
_admitted = sa.select(_first.c.id).select_from(_rooms.join(_first, onclause=sa.true())).subquery("admitted")
_ADMIT = (
    sa.update(steps)
    .where(steps.c.id == _admitted.c.id)
    .values(state=StepState.READY, sent_at=sa.func.now())
    .returning(*DESCRIBED)
)
_run = sa.bindparam("run", type_=sa.Text)
_BUDGETED = (
    sa.select(runs.c.id, runs.c.batched, CURRENT.label("budgets"), *run_consumption.c[*Consumed.__struct_fields__])
    .join_from(runs, run_consumption, run_consumption.c.run_id == runs.c.id, isouter=True)
    .where(runs.c.id.in_(sa.bindparam("ids", expanding=True)), runs.c.provenance.has_key(BUDGETS))
)
_lately = (
    sa.select(questions.c.id)
    .where(questions.c.run_id == _run, questions.c.finished_at.is_not(None))
    .order_by(questions.c.finished_at.desc(), questions.c.id.desc())
    .limit(LATELY)
    .subquery("lately")
)
# What was adopted from another run took nothing of the budget, and may be most of a fork.
_taken = (
    sa.select(
        sa.func.count().label("steps"),
        sa.func.sum(sa.func.coalesce(steps.c.prompt_tokens, 0) + sa.func.coalesce(steps.c.generated_tokens, 0)).label(
            "tokens"
        ),
        sa.func.sum(sa.func.coalesce(steps.c.milliseconds, 0)).label("milliseconds"),
    )
    .join_from(steps, _lately, steps.c.question_id == _lately.c.id)
    .where(steps.c.adopted_from.is_(None), steps.c.state.in_([StepState.FINISHED, StepState.FAILED]))
    .group_by(steps.c.question_id)
    .subquery("taken")
)
_LARGEST = sa.select(sa.func.max(_taken.c.steps), sa.func.max(_taken.c.tokens), sa.func.max(_taken.c.milliseconds))
_all_parts = sa.union_all(*_parts, _begun.where(steps.c.state == StepState.BATCHED)).subquery("parts")
_QUESTIONS_UNDER_WAY = sa.select(_all_parts.c.question_id).where(_all_parts.c.run_id == _run).distinct()
# Only looked at, to count: `_ADMIT` chooses again, under its locks.
_NEXT = _next(_run, sa.bindparam("room", type_=sa.BigInteger), lock=False)


def admit(connection: sa.Connection, exhausted: Collection[str] = ()) -> list[Dispatch]:
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
    within = rooms | _within_budgets(connection, rooms)
    rows = [{"run_id": run_id, "room": room} for run_id, room in within.items() if room]
    admitted = connection.execute(_ADMIT, {"rows": rows})
    messages: dict[str, list[Dispatch]] = defaultdict(list)
    for row in sorted(admitted, key=lambda row: row.id):
        messages[row.run_id].append(described(*row))
    # One of each run in turn, so that no run is served before the others.
    return [message for message in chain(*zip_longest(*messages.values())) if message is not None]


def _within_budgets(connection: sa.Connection, rooms: Mapping[str, int]) -> dict[str, int]:
    """Return for those of these runs that have budgets how many of their next steps may begin."""
    within = {}
    for row in connection.execute(_BUDGETED, {"ids": list(rooms)}).mappings():
        budgets = msgspec.convert(row["budgets"], Budgets)
        if budgets.run == NO_BUDGET:
            continue
        run = {"run": row["id"]}
        begun = set(connection.execute(_QUESTIONS_UNDER_WAY, run).scalars())
        consumed = Consumed(**{name: row[name] for name in Consumed.__struct_fields__ if row[name] is not None})
        largest = _largest(connection, run, consumed)
        # A batch takes hours: to wait for a single question's would take longer than anything.
        left = budgets.questions_left(consumed, largest, len(begun), alone=not row["batched"])
        if left is not None:
            waiting = connection.execute(_NEXT, run | {"room": rooms[row["id"]]})
            within[row["id"]] = _leading([step.question_id for step in waiting], begun, left)
    return within


def _largest(connection: sa.Connection, run: Mapping[str, str], consumed: Consumed) -> Consumed:
    """Return the most of each kind that one of the run's latest questions took; money goes by the tokens."""
    number, tokens, milliseconds = (value or 0 for value in connection.execute(_LARGEST, run).one())
    return Consumed(
        steps=int(number),
        tokens=int(tokens),
        seconds=Decimal(str(milliseconds)).scaleb(-3),
        money=consumed.money * int(tokens) / consumed.tokens if consumed.tokens else Decimal(),
    )


def _leading(waiting: Sequence[int], begun: Collection[int], left: int) -> int:
    """Return how many of the next steps, by their questions, are of those under way or of so many further ones."""
    further = set[int]()
    for number, question in enumerate(waiting):
        if question not in begun:
            further.add(question)
        if len(further) > left:
            return number
    return len(waiting)


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


# Closing runs: a run whose questions have all ended is sealed by a digest over all of them.

_closing_run = sa.bindparam("run", type_=sa.Text)
_unended = questions.c.status.in_(UNENDED_QUESTIONS)
_due = (
    runs.c.digest.is_(None),  # so that an index leaves out the runs that are closed
    runs.c.desired_state != DesiredState.PRUNED,
    ~sa.exists().where(questions.c.run_id == runs.c.id, _unended),
)
_DUE = sa.select(runs.c.id).where(*_due).order_by(runs.c.created_at, runs.c.id)
_CLOSE = (
    sa.update(runs)
    .where(runs.c.id == _closing_run, *_due)
    .values(digest=run_digest(_closing_run))
    .returning(runs.c.desired_state)
)

Closed = Callable[[sa.Connection, str, str], None]
"""Called in the transaction that seals a run, with its id and what a person wanted of it."""


def runs_to_close(connection: sa.Connection) -> list[str]:
    """Return the runs whose questions have all ended and that aren't closed, the oldest first."""
    return list(connection.execute(_DUE).scalars())


def close_run(engine: sa.Engine, run_id: str, closed: Closed = lambda _, __, ___: None) -> bool:
    """Seal a run, unless its questions are opened again meanwhile; returns whether it did.

    The digest over millions of questions takes minutes, and nothing is locked for that long. Instead REPEATABLE READ
    makes the update fail where another transaction has changed the run's row since the digest was begun.
    """
    try:
        with engine.execution_options(isolation_level="REPEATABLE READ").begin() as connection:
            desired = connection.execute(_CLOSE, {"run": run_id}).scalar()
            if desired is not None:
                closed(connection, run_id, desired)
            return desired is not None
    except OperationalError as error:
        if isinstance(error.orig, SerializationFailure):
            return False
        raise
