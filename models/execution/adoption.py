"""In-flight de-duplication: a step adopts the result of a twin that is computed, and waits for a twin under way.

Twins are steps of one experiment with the same fingerprint. At most one of them at a time is computed:

    A claim also tries to take the advisory lock that the step shares with its twins, and looks for them in a later
    statement. Two claims that both lead to a computation have both held that lock, one after the other. The first was
    committed before its lock was released, so the statement of the second sees it: with a live lease, and the second
    waits; or ended without a result; or with an expired lease. In the last case, as with any step, both are computed,
    and each result counts for its own step.

No transaction waits for such a lock: a step whose lock is taken is deferred, as if its twin were under way. So these
locks are part of no deadlock, and a process that is frozen while it holds one keeps no other from claiming.

A deferred step is ready, and due in `WAIT_SECONDS`. It needs no notice of its twin's end, however that comes, and can't
miss it. The commit that ends the twin is only faster: it sends the deferred steps itself, except those locked then.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.dialects.postgresql import ARRAY

from cotrail.core.results import Result
from cotrail.models.execution.leases import Adopted
from cotrail.models.execution.statements import DEFER
from cotrail.models.records.contents import ParagraphCache
from cotrail.models.records.steps import DESCRIBED, RECORD, Dispatch, described, read_records
from cotrail.models.schema.states import StepState
from cotrail.models.schema.tables import steps

WAIT_SECONDS = 1.0
"""How long a step is deferred for its twin, unless the twin's end sends it before."""

Key = tuple[str, str]
"""What twins share: the experiment and the fingerprint."""


class Twins(Struct, frozen=True, kw_only=True):
    """The twins of claimed steps; a claimed step in neither field has to be computed.

    adopted: results of twins, by the id of the claimed step.
    awaited: ids of steps whose twins are under way; their claims have been undone.
    """

    adopted: dict[int, Adopted]
    awaited: set[int]


_ids = sa.bindparam("ids", type_=ARRAY(sa.BigInteger))
_claimed, _ended = steps.alias("claimed"), steps.alias("ended")

_lock = sa.func.unnest(sa.bindparam("locks", type_=ARRAY(sa.BigInteger))).column_valued("lock")
_TRY_LOCKS = sa.select(_lock).where(sa.func.pg_try_advisory_xact_lock(_lock))
"""Takes those of these locks that are free, until the transaction ends, and returns them."""


def _twins_of(other: sa.FromClause) -> sa.ColumnElement[bool]:
    return sa.and_(
        steps.c.shared_in.is_not(None),
        steps.c.shared_in == other.c.shared_in,
        steps.c.fingerprint == other.c.fingerprint,
    )


_twin = sa.select(steps.c.id).where(_twins_of(_claimed)).correlate(_claimed).limit(1)
_done = _twin.where(steps.c.state == StepState.FINISHED)
_at_work = _twin.where(
    steps.c.state == StepState.RUNNING, steps.c.lease_until > sa.func.now(), steps.c.id != sa.func.all(_ids)
)
_found = (
    # Scalar subqueries with LIMIT 1: where a step has thousands of twins, only the first with a result is read.
    sa.select(sa.func.coalesce(_done.scalar_subquery(), _at_work.scalar_subquery()).label("id"))
    .where(_claimed.c.id == sa.func.any(_ids))
    .distinct()
    .subquery("found")
)
_TWINS = sa.select(
    steps.c.shared_in,
    *RECORD,
    sa.func.coalesce(steps.c.adopted_from, steps.c.id).label("computed_by"),
    steps.c.milliseconds,
).join_from(_found, steps, steps.c.id == _found.c.id)
"""Selects, for each claimed step's experiment and fingerprint, a twin with a result, else one under way."""

_waiting = (
    sa.select(steps.c.id, _ended.c.id.label("twin"))
    .join_from(_ended, steps, _twins_of(_ended))
    .where(
        _ended.c.id == sa.func.any(_ids),
        steps.c.state == StepState.READY,
        steps.c.sent_at.is_(None),
        steps.c.not_before.is_not(None),
    )
    .with_for_update(of=steps, skip_locked=True)
    .subquery("waiting")
)
_SEND_WAITING = (
    sa.update(steps)
    .where(steps.c.id == _waiting.c.id)
    .values(sent_at=sa.func.now(), not_before=None)
    .returning(_waiting.c.twin, *DESCRIBED)
)


def find_twins(
    connection: sa.Connection, claimed: Sequence[sa.RowMapping], worker: str, paragraphs: ParagraphCache
) -> Twins:
    """Look for twins of the steps that this transaction has claimed, and undo the claims of those that must wait.

    worker: the name under which they are claimed.
    """
    adopted: dict[int, Adopted] = {}
    awaited: list[sa.RowMapping] = []
    groups = _group(claimed)
    if groups:
        free = _try_locks(connection, groups)
        ids = [row["id"] for rows in groups.values() for row in rows]
        twins = {_key(row): row for row in connection.execute(_TWINS, {"ids": ids}).mappings()}
        results = _results(connection, twins, paragraphs)
        for key, rows in groups.items():
            twin = twins.get(key)
            if (adoption := results.get(key)) is not None:
                adopted |= {row["id"]: adoption for row in rows}
            elif key in free and (twin is None or twin["state"] != StepState.RUNNING):
                # Of equal steps in one claim the first is computed, and the others adopt its result later.
                awaited += rows[1:]
            else:
                awaited += rows
    if awaited:
        undone = [{"id": row["id"], "epoch": row["epoch"]} for row in awaited]
        connection.execute(DEFER, {"rows": undone, "holder": worker, "delay_seconds": WAIT_SECONDS})
    return Twins(adopted=adopted, awaited={row["id"] for row in awaited})


def take_waiting(connection: sa.Connection, step_ids: Sequence[int]) -> dict[int, list[Dispatch]]:
    """Mark the steps that wait for these, which have just ended, as sent; returns their messages by the twin's id."""
    waiting: dict[int, list[Dispatch]] = defaultdict(list)
    if step_ids:
        for twin, *message in connection.execute(_SEND_WAITING, {"ids": step_ids}):
            waiting[twin].append(described(*message))
    return waiting


def _group(claimed: Sequence[sa.RowMapping]) -> dict[Key, list[sa.RowMapping]]:
    """Return the steps that may have twins, by what they share with them."""
    groups: dict[Key, list[sa.RowMapping]] = defaultdict(list)
    for row in claimed:
        if row["shared_in"] is not None:
            groups[_key(row)].append(row)
    return groups


def _key(row: sa.RowMapping) -> Key:
    return row["shared_in"], row["fingerprint"]


def _try_locks(connection: sa.Connection, keys: Iterable[Key]) -> set[Key]:
    """Take the locks of these keys as far as they are free; returns the keys whose locks this transaction now holds."""
    # Keys that have the same number by chance put each other off for a second, and do no other harm.
    locks = {int.from_bytes(sha256("\0".join(key).encode()).digest()[:8], signed=True): key for key in keys}
    return {locks[lock] for lock in connection.execute(_TRY_LOCKS, {"locks": list(locks)}).scalars()}


def _results(
    connection: sa.Connection, twins: Mapping[Key, sa.RowMapping], paragraphs: ParagraphCache
) -> dict[Key, Adopted]:
    """Return the results of those twins that have a readable one."""
    records = read_records(connection, list(twins.values()), paragraphs)
    return {
        key: Adopted(step_id=twin["computed_by"], outcome=record.outcome, milliseconds=twin["milliseconds"])
        for (key, twin), record in zip(twins.items(), records, strict=True)
        if isinstance(record.outcome, Result)
    }
