"""The tables of the service.

projects ──< runs, experiments, tokens, jobs       (whose they are, where several teams share a service)
runs ──< webhook_deliveries: what other programs are to be notified of runs
batches ──< batch_items: requests that a provider answers within a day; what came of them is recorded in the steps
question_summaries, run_summaries: how questions that have ended came out; derived, and made again when lost
activities: who asked the service for what; idempotency_keys: what was submitted under which key
"""

from datetime import datetime
from decimal import Decimal
from typing import cast

from sqlalchemy import ARRAY, ColumnElement, Computed, ForeignKey, Identity, Table, Text, and_, false, text
from sqlalchemy.orm import Mapped, mapped_column

from cotrail.models.schema.base import Base, Json, no_keys, now
from cotrail.models.schema.states import BatchState, JobState, StepState
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


class Project(Base):
    """A team's own part of a service: its runs, corpora and experiments, and its quotas."""

    __tablename__ = "projects"

    name: Mapped[str] = mapped_column(primary_key=True)
    created_at: Mapped[datetime] = mapped_column(server_default=now)
    corpora: Mapped[list[str] | None]
    """The corpora of others that it may search too, as they are stored; NULL: all that no project made."""
    models: Mapped[list[str] | None]
    """The models that it may use; NULL: all."""
    open_questions: Mapped[int | None]
    """The most questions that may be open at once."""
    money: Mapped[Decimal | None]
    """The most that its runs may spend, in US dollars."""
    stored_bytes: Mapped[int | None]
    """The most bytes that its uploaded files may take."""


class Token(Base):
    """A secret that lets a program, or a person who signed in, use the service."""

    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(primary_key=True)
    project: Mapped[str] = mapped_column(ForeignKey("projects.name"))
    name: Mapped[str]
    scopes: Mapped[list[str]]
    digest: Mapped[str] = mapped_column(unique=True)
    """The SHA-256 of the secret, which nothing stores."""
    person: Mapped[str | None]
    """Who signed in; NULL for a token of a program's."""
    created_at: Mapped[datetime] = mapped_column(server_default=now)
    created_by: Mapped[str]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    used_at: Mapped[datetime | None]


class Activity(Base):
    """Who asked the service to change what."""

    __tablename__ = "activities"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    at: Mapped[datetime] = mapped_column(server_default=now)
    project: Mapped[str]
    actor: Mapped[str]
    token_id: Mapped[str | None]
    operation: Mapped[str]
    subject: Mapped[str | None]
    """The run, corpus or other thing that was named."""
    status: Mapped[int]
    """HTTP's status code of the answer."""
    request_id: Mapped[str]


class IdempotencyKey(Base):
    """What was made under a key that a client chose, so that the same request again makes nothing more."""

    __tablename__ = "idempotency_keys"

    project: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    request: Mapped[str]
    """The digest of the request."""
    made: Mapped[list[str]]
    """The ids of what the request made."""
    created_at: Mapped[datetime] = mapped_column(server_default=now)


class Job(Base):
    """Work that isn't a run's, in a queue: indexing a corpus, conducting an experiment."""

    __tablename__ = "jobs"

    id: Mapped[str] = mapped_column(primary_key=True)
    project: Mapped[str] = mapped_column(ForeignKey("projects.name"))
    kind: Mapped[str]
    request: Mapped[Json]
    state: Mapped[JobState] = mapped_column(server_default="queued")
    progress: Mapped[int] = mapped_column(server_default="0")
    """How far it has come at most, in what its kind counts: paragraphs, questions."""
    failures: Mapped[int] = mapped_column(server_default="0")
    """How often its process ended without a result since it came any further."""
    result: Mapped[Json | None]
    """What it came to; of an experiment that is under way, how far it is."""
    error: Mapped[Json | None]
    """Why it failed: `type` and `message`."""
    created_at: Mapped[datetime] = mapped_column(server_default=now)
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    epoch: Mapped[int] = mapped_column(server_default="0")
    """Fencing token: how often it was claimed."""
    worker: Mapped[str | None]
    lease_until: Mapped[datetime | None]
    """Until when nobody else claims it: of a queued job, the end of a pause."""


class WebhookDelivery(Base):
    """An event of a run that a configured endpoint is to be notified of; written where the event is."""

    __tablename__ = "webhook_deliveries"

    id: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    endpoint: Mapped[str]
    """The endpoint's name in the configuration."""
    event: Mapped[Json]
    created_at: Mapped[datetime] = mapped_column(server_default=now)
    attempts: Mapped[int] = mapped_column(server_default="0")
    next_at: Mapped[datetime | None] = mapped_column(server_default=now)
    """When it is tried next; NULL once it was delivered, or given up."""
    delivered_at: Mapped[datetime | None]
    problem: Mapped[str | None]
    """Why the last attempt failed."""


projects, tokens, activities, idempotency_keys, jobs, webhook_deliveries = (
    cast(Table, table.__table__) for table in (Project, Token, Activity, IdempotencyKey, Job, WebhookDelivery)
)
"""The same as SQLAlchemy Core tables, for statements over many rows."""
