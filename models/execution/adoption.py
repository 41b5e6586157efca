"""Adoption: a step whose twin is computed takes the twin's result over, and one whose twin is at work waits for it.

Twins are steps of one experiment with one fingerprint. Of twins, one at a time is computed:

    Whoever claims a step also tries for the advisory lock that it shares with its twins, and looks at them in a later
    statement. Two that go on to compute have both held that lock, one after the other. The claim of the first was
    committed before its lock was free, so the second one's statement sees it: under a live lease, and the second waits;
    or ended without a result; or with a lease that ran out. The last may happen to any step: then both are computed,
    and each result counts for its own step.

Nobody waits for such a lock: a step whose lock is taken is left for later, as if its twin were at work. So these locks
are part of no deadlock, and a process that is frozen while it holds one keeps nobody from claiming.

A waiting step is ready, and due in `WAIT_SECONDS`. It needs no word of its twin's end, however that comes, and can't
miss it. The commit that ends the twin is only quicker: it sends the waiting steps itself, but for those that are locked
just then.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from msgspec import Struct
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    RowMapping,
    and_,
    bindparam,
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY

from cotrail.core.results import Result
from models.execution.claims import Adopted
from models.execution.statements import DEFER
from models.records.dispatch import Dispatch
from models.records.histories import RECORD, read_records
from models.records.paragraphs import ParagraphCache
from models.schema.states import StepState
from models.schema.tables import steps

WAIT_SECONDS = 1.0
"""How long a step waits for its twin until it looks again, unless the twin's end sends it before."""

Key = tuple[str, str]
"""What twins have in common: the experiment and the fingerprint."""


class Twins(Struct, frozen=True, kw_only=True):
    """What their twins mean for claimed steps; those in neither are to be computed.

    adopted: results that there are already, by the id of the claimed step.
    awaited: ids of steps whose twins are at work; their claims have been undone.
    """

    adopted: dict[int, Adopted]
    awaited: set[int]


_ids = bindparam("ids", type_=ARRAY(BigInteger))
_claimed, _ended = steps.alias("claimed"), steps.alias("ended")

_lock = func.unnest(bindparam("locks", type_=ARRAY(BigInteger))).column_valued("lock")
_TRY_LOCKS = select(_lock).where(func.pg_try_advisory_xact_lock(_lock))
"""Takes those of these locks that are free until the transaction ends, and returns them."""


def _twins_of(other: FromClause) -> ColumnElement[bool]:
    return and_(
        steps.c.shared_in.is_not(None),
        steps.c.shared_in == other.c.shared_in,
        steps.c.fingerprint == other.c.fingerprint,
    )


_twin = select(steps.c.id).where(_twins_of(_claimed)).correlate(_claimed).limit(1)
_done = _twin.where(steps.c.state == StepState.FINISHED)
_at_work = _twin.where(
    steps.c.state == StepState.RUNNING, steps.c.lease_until > func.now(), steps.c.id != func.all(_ids)
)
_found = (
    # In this form, of twins by the thousand only the first with a result is looked at.
    select(func.coalesce(_done.scalar_subquery(), _at_work.scalar_subquery()).label("id"))
    .where(_claimed.c.id == func.any(_ids))
    .distinct()
    .subquery("found")
)
_TWINS = select(
    steps.c.shared_in,
    *RECORD,
    func.coalesce(steps.c.adopted_from, steps.c.id).label("computed_by"),
    steps.c.milliseconds,
).join_from(_found, steps, steps.c.id == _found.c.id)
"""For the claimed steps' experiments and fingerprints, a twin with a result, else one at work."""

_waiting = (
    select(steps.c.id, _ended.c.id.label("twin"))
    .join_from(_ended, steps, _twins_of(_ended))
    .where(
        _ended.c.id == func.any(_ids),
        steps.c.state == StepState.READY,
        steps.c.sent_at.is_(None),
        steps.c.not_before.is_not(None),
    )
    .with_for_update(of=steps, skip_locked=True)
    .subquery("waiting")
)
_SEND_WAITING = (
    update(steps)
    .where(steps.c.id == _waiting.c.id)
    .values(sent_at=func.now(), not_before=None)
    .returning(_waiting.c.twin, steps.c.id, steps.c.epoch, steps.c.kind, steps.c.sequence)
)


def find_twins(connection: Connection, claimed: Sequence[RowMapping], worker: str, paragraphs: ParagraphCache) -> Twins:
    """Looks for twins of the steps that this transaction has claimed, and undoes the claims of those that must wait.

    worker: in whose name they are claimed.
    """
    adopted: dict[int, Adopted] = {}
    awaited: list[RowMapping] = []
    groups = _group(claimed)
    if groups:
        free = _try_locks(connection, groups)
        ids = [row["id"] for rows in groups.values() for row in rows]
        twins = {_key(row): row for row in connection.execute(_TWINS, {"ids": ids}).mappings()}
        results = _results(connection, twins, paragraphs)
        for key, rows in groups.items():
            twin = twins.get(key)
            if (found := results.get(key)) is not None:
                adopted |= {row["id"]: found for row in rows}
            elif key in free and (twin is None or twin["state"] != StepState.RUNNING):
                awaited += rows[1:]
            else:
                awaited += rows
    if awaited:
        undone = [{"id": row["id"], "epoch": row["epoch"]} for row in awaited]
        connection.execute(DEFER, {"rows": undone, "holder": worker, "delay_seconds": WAIT_SECONDS})
    return Twins(adopted=adopted, awaited={row["id"] for row in awaited})


def take_waiting(connection: Connection, step_ids: Sequence[int]) -> dict[int, list[Dispatch]]:
    """The steps that wait for these, which have just ended; from now on they count as sent."""
    waiting: dict[int, list[Dispatch]] = defaultdict(list)
    if step_ids:
        for twin, *message in connection.execute(_SEND_WAITING, {"ids": step_ids}):
            waiting[twin].append(Dispatch(*message))
    return waiting


def _group(claimed: Sequence[RowMapping]) -> dict[Key, list[RowMapping]]:
    """The steps that may have twins, by what they have in common with them."""
    groups: dict[Key, list[RowMapping]] = defaultdict(list)
    for row in claimed:
        if row["shared_in"] is not None:
            groups[_key(row)].append(row)
    return groups


def _key(row: RowMapping) -> Key:
    return row["shared_in"], row["fingerprint"]


def _try_locks(connection: Connection, keys: Iterable[Key]) -> set[Key]:
    """Those of these keys whose locks this transaction holds from now on."""
    locks = {int.from_bytes(sha256("\0".join(key).encode()).digest()[:8], signed=True): key for key in keys}
    return {locks[lock] for lock in connection.execute(_TRY_LOCKS, {"locks": list(locks)}).scalars()}


def _results(connection: Connection, twins: Mapping[Key, RowMapping], paragraphs: ParagraphCache) -> dict[Key, Adopted]:
    """The twins' results, of those that have one which can be read."""
    records = read_records(connection, list(twins.values()), paragraphs)
    return {
        key: Adopted(step_id=twin["computed_by"], outcome=record.outcome, milliseconds=twin["milliseconds"])
        for (key, twin), record in zip(twins.items(), records, strict=True)
        if isinstance(record.outcome, Result)
    }
