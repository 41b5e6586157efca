"""The tables of the service.

projects ──< runs, experiments, tokens, jobs       (whose they are, where several teams share a service)
runs ──< webhook_deliveries: what other programs are to be notified of runs
activities: who asked the service for what; idempotency_keys: what was submitted under which key
"""

from datetime import datetime
from decimal import Decimal
from typing import cast

from sqlalchemy import ForeignKey, Identity, Table
from sqlalchemy.orm import Mapped, mapped_column

from cotrail.models.schema.base import Base, Json, now
from cotrail.models.schema.states import JobState


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
