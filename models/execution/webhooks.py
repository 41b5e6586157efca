"""The outbox of webhooks: what endpoints are to be notified of runs, written with the change itself.

A delivery is claimed by moving its next attempt into the future before it is made, so that one whose process died is
made again then. So an endpoint is notified at least once, under the same id each time.
"""

from collections.abc import Collection, Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Text, and_, bindparam, case, exists, func, not_, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert

from cotrail.models.records.budgets import stopped_runs
from cotrail.models.schema.service_tables import webhook_deliveries
from cotrail.models.schema.states import DesiredState, QuestionStatus
from cotrail.models.schema.tables import questions, run_labels, runs

MOST_CLAIMED = 20
"""The largest number of deliveries that are claimed at once."""

PAUSES_SECONDS = (5, 300, 1800, 7200, 18_000, 36_000, 36_000)
"""The pauses between attempts (Standard Webhooks recommends these); after the last one a delivery is given up."""


class RunBasics(Struct, frozen=True, kw_only=True):
    """What is sent of a run: its own words and counts, and no text of its questions.

    questions: the number of its questions by status; digest: of the run, once all of them have ended.
    """

    run: str
    project: str
    name: str | None
    questions: dict[str, int]
    digest: str | None


class Delivery(Struct, frozen=True, kw_only=True):
    """An event for an endpoint; attempts: the number of those made, this one included."""

    id: str
    endpoint: str
    event: dict[str, Any]
    attempts: int


_run = bindparam("run", type_=Text)
_FACTS = (
    select(runs.c.id, runs.c.project, run_labels.c.name, runs.c.digest)
    .outerjoin(run_labels, run_labels.c.run_id == runs.c.id)
    .where(runs.c.id == _run)
)
_COUNTS = select(questions.c.status, func.count()).where(questions.c.run_id == _run).group_by(questions.c.status)

_of_run = questions.c.run_id == runs.c.id
_is_blocked = questions.c.status == QuestionStatus.BLOCKED
_blocked_at = select(func.max(questions.c.finished_at)).where(_of_run, _is_blocked).scalar_subquery()
# Since the latest block only: a run that is resumed and blocked again is news again.
_told = exists().where(
    webhook_deliveries.c.run_id == runs.c.id,
    webhook_deliveries.c.event["type"].astext == bindparam("type", type_=Text),
    webhook_deliveries.c.created_at >= _blocked_at,
)
_is_live = and_(
    runs.c.digest.is_(None),  # so that an index leaves out the runs that have ended
    runs.c.desired_state.in_((DesiredState.ACTIVE, DesiredState.PAUSED)),
)

_due = (
    select(webhook_deliveries.c.id)
    .where(
        webhook_deliveries.c.next_at <= func.now(),
        webhook_deliveries.c.endpoint.not_in(bindparam("busy", expanding=True)),
    )
    .order_by(webhook_deliveries.c.next_at)
    .limit(MOST_CLAIMED)
    .with_for_update(skip_locked=True)
)


def read_facts(connection: Connection, run_id: str) -> RunBasics:
    """Return what is sent of a run."""
    row = connection.execute(_FACTS, {"run": run_id}).one()
    counts: dict[str, int] = dict(connection.execute(_COUNTS, {"run": run_id}).all())
    return RunBasics(run=row.id, project=row.project, name=row.name, questions=counts, digest=row.digest)


def newly_blocked(connection: Connection, event_type: str) -> list[str]:
    """Return blocked runs of which nobody was notified since they were blocked; event_type: what would be sent.

    A run is blocked where no question is open and some are blocked, or where one cause stops it.
    """
    has_open = exists().where(_of_run, questions.c.status == QuestionStatus.OPEN)
    is_blocked = or_(not_(has_open), runs.c.id.in_(stopped_runs(connection)))
    query = select(runs.c.id).where(_is_live, exists().where(_of_run, _is_blocked), is_blocked, not_(_told))
    return list(connection.execute(query.order_by(runs.c.created_at, runs.c.id), {"type": event_type}).scalars())


def post(connection: Connection, run_id: str, events: Sequence[tuple[str, str, dict[str, Any]]]) -> None:
    """Put events of a run into the outbox: each with its id, its endpoint's name and what is sent."""
    rows = [{"id": id_, "run_id": run_id, "endpoint": endpoint, "event": event} for id_, endpoint, event in events]
    if rows:
        connection.execute(insert(webhook_deliveries), rows)


def claim_due(connection: Connection, busy: Collection[str] = ()) -> list[Delivery]:
    """Return the deliveries that are due; each is due again after a pause unless its outcome is recorded.

    busy: the endpoints for which this process has some under way.
    """
    table = webhook_deliveries.c
    claimed = (
        update(webhook_deliveries)
        .where(table.id.in_(_due))
        .values(attempts=table.attempts + 1, next_at=func.now() + _pause())
        .returning(table.id, table.endpoint, table.event, table.attempts)
    )
    return [Delivery(**row) for row in connection.execute(claimed, {"busy": list(busy)}).mappings()]


def delivered(connection: Connection, delivery: Delivery) -> None:
    """Record that an endpoint took an event."""
    values = {"delivered_at": func.now(), "next_at": None, "problem": None}
    _record(connection, [delivery.id], values)


def undelivered(connection: Connection, delivery: Delivery, problem: str, *, give_up: bool) -> None:
    """Record why an endpoint didn't take an event; give_up: whether it isn't tried again."""
    over = give_up or delivery.attempts > len(PAUSES_SECONDS)
    _record(connection, [delivery.id], {"problem": problem, **({"next_at": None} if over else {})})


def _record(connection: Connection, ids: Collection[str], values: dict[str, Any]) -> None:
    connection.execute(update(webhook_deliveries).where(webhook_deliveries.c.id.in_(ids)).values(values))


def _pause() -> Any:
    """The pause behind the attempt that is about to be made."""
    by_attempts = dict(enumerate(PAUSES_SECONDS))
    seconds = case(by_attempts, value=webhook_deliveries.c.attempts, else_=PAUSES_SECONDS[-1])
    return seconds * text("interval '1 second'")
