"""The tables of summaries: how questions that have ended came out; derived, and made again when lost.

questions ──  question_summaries
runs ──  run_summaries
"""

from datetime import datetime
from decimal import Decimal
from typing import cast

from sqlalchemy import Computed, ForeignKey, Table, false
from sqlalchemy.orm import Mapped, mapped_column

from cotrail.models.schema.base import Base, Json, no_keys


class QuestionSummary(Base):
    """How a question that has ended came out, computed from its trace: what lists are filtered and sorted by."""

    __tablename__ = "question_summaries"

    question_id: Mapped[int] = mapped_column(ForeignKey("questions.id", ondelete="CASCADE"), primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    version: Mapped[int]
    """By which rules it was computed."""
    outcome: Mapped[str]
    cause: Mapped[str | None]
    """Why the answer is wrong."""
    f1: Mapped[float | None]
    recall: Mapped[float | None]
    """Of the gold paragraphs."""
    scores: Mapped[Json]
    """The metrics that the question has, by their names."""
    limited: Mapped[bool]
    """True where a limit ended it."""
    steps: Mapped[int]
    retries: Mapped[int]
    """Executions of its steps beyond the first of each."""
    tokens: Mapped[int]
    """Those that language models read and wrote."""
    milliseconds: Mapped[float]
    cost: Mapped[Decimal | None]
    """In US dollars; NULL where its models have no price."""
    graded: Mapped[float] = mapped_column(Computed("COALESCE(f1, -1)", persisted=True))
    paid: Mapped[float] = mapped_column(
        Computed("COALESCE(cost::double precision, tokens::double precision)", persisted=True)
    )
    """By which it is sorted, where it has no F1, or no cost."""


class SummarizedRun(Base):
    """How far the questions of a run are summarized, and the run with them."""

    __tablename__ = "run_summaries"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    version: Mapped[int]
    digest: Mapped[str | None]
    """The run's digest when it was begun."""
    complete: Mapped[bool] = mapped_column(server_default=false())
    """True where the run was sealed, and all its questions are summarized."""
    through_at: Mapped[datetime | None]
    through_id: Mapped[int | None]
    """The last question by the time of its end up to which all are summarized, apart from those that ended just now."""
    counts: Mapped[Json] = mapped_column(server_default=no_keys)
    """Numbers of questions by how they came out, and sums of what they took."""
    scores: Mapped[Json] = mapped_column(server_default=no_keys)
    """Mean and interval of each main metric, of a complete one."""


question_summaries, run_summaries = (cast(Table, table.__table__) for table in (QuestionSummary, SummarizedRun))
"""The same as SQLAlchemy Core tables, for statements over many rows."""
