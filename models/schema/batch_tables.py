"""The tables of batches: requests that a provider answers within a day, for less money.

    steps ──  batch_items >── batches

They hold what is under way; what came of it is recorded in the steps, as that of every other step.
"""

from datetime import datetime
from typing import cast

from sqlalchemy import ARRAY, ColumnElement, ForeignKey, Table, Text, and_, text
from sqlalchemy.orm import Mapped, mapped_column

from cotrail.models.schema.base import Base, now
from cotrail.models.schema.states import BatchState, StepState
from cotrail.models.schema.tables import steps

_none, _zero = text("'{}'"), text("0")


class Batch(Base):
    """A batch of requests to one model."""

    __tablename__ = "batches"

    key: Mapped[str] = mapped_column(primary_key=True)
    """What the provider knows it by in addition to its own id; the ids of its lines begin with it."""
    model_name: Mapped[str]
    state: Mapped[BatchState] = mapped_column(Text, server_default="forming")
    sender: Mapped[str]
    """The process that sends it: a fencing token, as another one may take over."""
    lines: Mapped[int]
    digest: Mapped[str]
    """The SHA-256 of its lines' ids and bodies."""
    provider_id: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=now)
    sent_at: Mapped[datetime | None]
    checked_at: Mapped[datetime | None]
    """When the provider was last asked about it."""
    missing_since: Mapped[datetime | None]
    """Since when the provider hasn't known it, or hasn't given all its answers."""
    expires_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    done: Mapped[int] = mapped_column(server_default=_zero)
    """How many lines have ended, as far as the provider tells."""
    answered: Mapped[int] = mapped_column(server_default=_zero)
    unanswered: Mapped[int] = mapped_column(server_default=_zero)
    """How many lines expired, were lost or met a busy server, and are sent again."""
    unneeded: Mapped[int] = mapped_column(server_default=_zero)
    """How many answers nobody needs: their steps were cancelled meanwhile, they came twice, or nobody asked."""
    too_large: Mapped[bool] = mapped_column(server_default=text("false"))
    """It failed as it was more than the account may have waiting."""
    problem: Mapped[str | None]
    """What went wrong with it last."""


class BatchItem(Base):
    """A step that was, or is, asked in a batch. It outlives the step's end, and then only says which batch it was."""

    __tablename__ = "batch_items"

    step_id: Mapped[int] = mapped_column(ForeignKey("steps.id", ondelete="CASCADE"), primary_key=True)
    model_name: Mapped[str]
    body: Mapped[str | None]
    """The request that waits for an answer, as JSON text."""
    batch: Mapped[str | None] = mapped_column(ForeignKey("batches.key"))
    """The latest batch that it was in; NULL while it waits for one."""
    answers: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=_none)
    """What the provider answered to the step's requests until now, as JSON text."""
    since: Mapped[datetime] = mapped_column(server_default=now)
    """Since when it has waited for a batch."""
    returned: Mapped[int] = mapped_column(server_default=_zero)
    """How often a batch ended without an answer to this request."""
    lost: Mapped[int] = mapped_column(server_default=_zero)
    """How often the provider lost a request of the step's, which it may have carried out and charged."""
    lost_tokens: Mapped[int] = mapped_column(server_default=_zero)
    """About how many tokens it read for these."""


batches, batch_items = (cast(Table, table.__table__) for table in (Batch, BatchItem))

UNANSWERED: ColumnElement[bool] = and_(
    batch_items.c.body.is_not(None), batch_items.c.step_id == steps.c.id, steps.c.state == StepState.BATCHED
)
"""The item of the step, which waits for an answer to its request."""
