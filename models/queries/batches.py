"""Batches of a run: what of it waits for one, and what is with its provider."""

from datetime import datetime

from msgspec import Struct
from sqlalchemy import BigInteger, Connection, Text, bindparam, cast, func, select

from cotrail.models.schema.batch_tables import UNANSWERED, batch_items, batches
from cotrail.models.schema.conditions import QUESTION_OPEN
from cotrail.models.schema.states import OPEN_BATCHES
from cotrail.models.schema.tables import runs, steps

LATELY_SECONDS = 300.0
"""How long it is told that an account had no room for a request."""


class BatchUnderWay(Struct, frozen=True, kw_only=True):
    """A batch that hasn't ended.

    steps: how many of the run wait for it; lines: how many requests it has, of all runs; done: how many have ended, as
    far as the provider tells; provider_id, sent_at: None while it may not have been sent; problem: what went wrong.
    """

    provider_id: str | None
    steps: int
    lines: int
    done: int
    sent_at: datetime | None
    expires_at: datetime | None
    problem: str | None


class RunBatches(Struct, frozen=True, kw_only=True):
    """The batches of a run that is asked in batches.

    waves: the most batches that a question has been in, the last of which may be under way or to come;
    waiting: how many steps wait for a batch to be made up. full: what the provider said where its account had no room
    for a single request of theirs lately.
    """

    waves: int
    waiting: int
    under_way: tuple[BatchUnderWay, ...] = ()
    full: str | None = None


_run = bindparam("run", type_=Text)
_is_batched = select(runs.c.batched).where(runs.c.id == _run)
_of_run = steps.c.id == batch_items.c.step_id, steps.c.run_id == _run
_wave = func.coalesce(batch_items.c.batch, "")
_asked_in = select(func.count(_wave.distinct()).label("asked")).where(*_of_run).group_by(steps.c.question_id)
_asked = _asked_in.subquery("asked")
_WAVES = select(func.coalesce(func.max(_asked.c.asked), 0))
_WAITING = select(func.count()).where(steps.c.run_id == _run, batch_items.c.batch.is_(None), UNANSWERED, QUESTION_OPEN)
_FULL = (
    select(batches.c.problem)
    .where(
        batches.c.too_large,
        batches.c.lines == 1,
        batches.c.ended_at > func.now() - func.make_interval(0, 0, 0, 0, 0, 0, LATELY_SECONDS),
        batches.c.model_name.in_(select(batch_items.c.model_name).where(*_of_run, batch_items.c.batch.is_(None))),
    )
    .order_by(batches.c.ended_at.desc())
    .limit(1)
)
_UNDER_WAY = (
    select(
        *(batches.c[name] for name in ("provider_id", "lines", "done", "sent_at", "expires_at", "problem")),
        cast(func.count(), BigInteger).label("steps"),
    )
    .where(
        steps.c.run_id == _run,
        batch_items.c.batch == batches.c.key,
        UNANSWERED,
        batches.c.state.in_(OPEN_BATCHES),
    )
    .group_by(batches.c.key)
    .order_by(batches.c.created_at, batches.c.key)
)


def read_batches(connection: Connection, run_id: str) -> RunBatches | None:
    """Return the batches of a run; None where it isn't asked in batches."""
    parameters = {"run": run_id}
    if not connection.execute(_is_batched, parameters).scalar():
        return None
    return RunBatches(
        waves=connection.execute(_WAVES, parameters).scalar_one(),
        waiting=connection.execute(_WAITING, parameters).scalar_one(),
        full=connection.execute(_FULL, parameters).scalar(),
        under_way=tuple(BatchUnderWay(**row) for row in connection.execute(_UNDER_WAY, parameters).mappings()),
    )
