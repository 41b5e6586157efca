"""The tables.

    experiments ──< runs ──< questions ──< steps ──< attempts
                                └──< annotations, cause_labels
                             ├──── sentences         (what a Reason step wrote)
                             └──< paragraph_sets >── paragraphs   (what a Retrieve step found)
    demonstrations: the examples that prompts begin with, once by digest
    projects ──< runs, experiments, tokens, jobs       (whose they are, where several teams share a service)
    activities: who asked the service for what; idempotency_keys: what was submitted under which key
    webhook_deliveries: what other programs are to be told of runs
    question_summaries, run_summaries: how questions that have ended came out; derived, and made anew when lost

A step in state `ready` is its own outbox row: while it is unclaimed, its message may be sent again
(docs/architecture.md).
Final rows are never changed: triggers refuse it, and digests would show it (`cotrail.models.schema.seals`). Only
`cotrail retry` opens failed questions and steps again (`cotrail.models.commands.retrying`).
"""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, ClassVar, cast

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Computed,
    Double,
    ForeignKey,
    Identity,
    Index,
    MetaData,
    Numeric,
    String,
    Table,
    false,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import UserDefinedType

from cotrail.models.schema.states import (
    DEFAULT_PROJECT,
    AttemptOutcome,
    DesiredState,
    JobState,
    QuestionStatus,
    StepState,
)

Json = dict[str, Any]
now = text("now()")
no_entries, no_keys = text("'[]'"), text("'{}'")


class Base(DeclarativeBase):
    """Base class of the tables; names of constraints are fixed so that migrations can refer to them."""

    metadata = MetaData(
        naming_convention={
            "ix": "%(table_name)s_%(column_0_N_name)s_idx",
            "uq": "%(table_name)s_%(column_0_N_name)s_key",
            "ck": "%(table_name)s_%(constraint_name)s_check",
            "fk": "%(table_name)s_%(column_0_name)s_fkey",
            "pk": "%(table_name)s_pkey",
        }
    )
    type_annotation_map: ClassVar = {
        Json: JSONB,
        list[str]: JSONB,
        list[Json]: JSONB,
        datetime: TIMESTAMP(timezone=True),
        float: Double,
        Decimal: Numeric,
        int: BigInteger,
        DesiredState: String,
        QuestionStatus: String,
        StepState: String,
        AttemptOutcome: String,
        JobState: String,
    }


def one_of(column: str, states: type[StrEnum]) -> CheckConstraint:
    """Return the constraint that a column holds one of these states."""
    values = ", ".join(f"'{state}'" for state in states)
    return CheckConstraint(f"{column} IN ({values})", name=column)


def _ended_or_without(state: str, *columns: str) -> CheckConstraint:
    """Return the constraint that a row which hasn't ended holds none of the columns of an end.

    No digest seals such a row, so a reader couldn't tell a forged end from a recorded one.
    """
    unheld = " AND ".join(f"{column} IS NULL" for column in columns)
    return CheckConstraint(f"{state} IN ('finished', 'failed', 'cancelled') OR ({unheld})", name="end")


class TransactionNumber(UserDefinedType[int]):
    """PostgreSQL's `xid8`: the number of a transaction, which none has again."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        """The type's name in SQL."""
        return "xid8"


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


class Experiment(Base):
    """Runs that belong together; those that reuse steps do so among themselves."""

    __tablename__ = "experiments"
    __table_args__ = (Index("experiments_project_idx", "project"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    created_at: Mapped[datetime] = mapped_column(server_default=now)
    plan: Mapped[Json]
    """The experiment's file as it was read, every default spelled out."""
    project: Mapped[str] = mapped_column(ForeignKey("projects.name"), server_default=DEFAULT_PROJECT)


class Run(Base):
    """A submitted evaluation, with everything that decides its results."""

    __tablename__ = "runs"
    __table_args__ = (
        one_of("desired_state", DesiredState),
        Index("runs_experiment_id_cell_key", "experiment_id", "cell", unique=True),
        Index("runs_created_at_id_idx", "created_at", "id"),
        Index("runs_project_created_at_id_idx", "project", "created_at", "id"),
        Index("runs_unsealed_idx", "created_at", "id", postgresql_where=text("digest IS NULL")),
        Index(
            "runs_judged_idx",
            text("(settings -> 'runs')"),
            postgresql_using="gin",
            postgresql_where=text("system = 'judge'"),
        ),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    created_at: Mapped[datetime] = mapped_column(server_default=now)
    project: Mapped[str] = mapped_column(ForeignKey("projects.name"), server_default=DEFAULT_PROJECT)
    experiment_id: Mapped[str | None] = mapped_column(ForeignKey("experiments.id", ondelete="CASCADE"))
    cell: Mapped[str | None]
    """The run's name within its experiment."""
    reuse: Mapped[bool] = mapped_column(default=False)
    """True where steps that another run of the experiment computed are adopted."""
    desired_state: Mapped[DesiredState] = mapped_column(default=DesiredState.ACTIVE)
    """What a person wants of it; the view `run_states` has its state."""
    priority: Mapped[int] = mapped_column(server_default="0")
    """Questions of runs with a higher one are admitted first."""
    served: Mapped[bool] = mapped_column(server_default=false())
    """True where its language model answers from a server or a script: its steps wait for no model that computes."""
    batched: Mapped[bool] = mapped_column(server_default=false())
    """True where its language model is asked in batches, as far as its provider offers them."""
    asked: Mapped[bool] = mapped_column(server_default=false())
    """True where somebody waits for the answer: its steps go before those of all other runs."""
    size: Mapped[int]
    """The number of its questions."""
    origin: Mapped[str | None]
    """The run that it was forked from, which may have been pruned since: so this is no foreign key."""
    forked_at: Mapped[str | None]
    """The step from which on its questions are its own."""
    system: Mapped[str]
    system_version: Mapped[int]
    settings: Mapped[Json]
    """The system's settings, every default spelled out."""
    dataset: Mapped[str]
    corpus: Mapped[str | None]
    corpus_revision: Mapped[str]
    knowledge: Mapped[Json] = mapped_column(server_default=no_keys)
    """Revision of each knowledge source by its name; name and digest of each engine of a further role by the role."""
    model_name: Mapped[str]
    model: Mapped[str]
    """Name and digest of the model."""
    embedder_name: Mapped[str] = mapped_column(server_default="")
    embedder: Mapped[str] = mapped_column(server_default="")
    """Name and digest of the model that embeds sentences; empty where the system needs none."""
    entailer_name: Mapped[str] = mapped_column(server_default="")
    entailer: Mapped[str] = mapped_column(server_default="")
    """Name and digest of the model that judges entailment; empty where the system needs none."""
    profile: Mapped[str]
    temperature: Mapped[float]
    seed: Mapped[int]
    demonstrations: Mapped[Json]
    """Digest of the demonstrations by answer form."""
    provenance: Mapped[Json]
    """Versions, git revision and paths at submission, for a reader; the run's plan, its prices and its budgets."""
    opened: Mapped[str]
    """The digest of the configuration."""
    digest: Mapped[str | None]
    """The digest of the run and all its questions, once these have ended."""


class RunLabel(Base):
    """How people call a run; neither its configuration nor its digests know of it."""

    __tablename__ = "run_labels"
    __table_args__ = (Index("run_labels_name_idx", "name", postgresql_where=text("name IS NOT NULL")),)

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str | None]
    tags: Mapped[list[str]] = mapped_column(server_default=no_entries)


class Question(Base):
    """A question of a run, and in the end its answer."""

    __tablename__ = "questions"
    __table_args__ = (
        one_of("status", QuestionStatus),
        _ended_or_without("status", "answer", "sentences", "collected", "weighing", "ended_by", "digest"),
        Index("questions_run_id_key_key", "run_id", "key", unique=True),
        Index("questions_standing_idx", "run_id", "status", "id"),
        Index("questions_run_id_changed_in_id_idx", "run_id", "changed_in", "id"),
        Index("questions_ended_idx", "run_id", "finished_at", "id", postgresql_where=text("finished_at IS NOT NULL")),
    )

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    position: Mapped[int]
    key: Mapped[str]
    """The dataset's own id."""
    text: Mapped[str]
    answers: Mapped[list[str]]
    gold: Mapped[list[Json]]
    pinned: Mapped[Json | None]
    """The passage that every prompt shows, title and text."""
    evidence: Mapped[list[str | Json]] = mapped_column(JSONB, server_default=no_entries)
    """The evidence that the dataset names: paragraphs, or titles of pages."""
    kind: Mapped[str] = mapped_column(default="")
    """The kinds that the dataset counts the question among: `cotrail.core.question_kinds`."""
    judged: Mapped[list[Json] | None]
    """The answers of other runs that a judge's run grades: `cotrail.core.questions.JudgedAnswer`."""
    status: Mapped[QuestionStatus] = mapped_column(default=QuestionStatus.OPEN)
    answer: Mapped[str | None]
    sentences: Mapped[list[str] | None]
    """The chain of thought that the answer rests on."""
    collected: Mapped[list[str] | None]
    """The digests of the collected paragraphs, in that order."""
    weighing: Mapped[Json | None]
    """How the answer was chosen among several chains': `cotrail.faithfulness.weighing`."""
    reason: Mapped[Json | None]
    """Why the question failed or is blocked: `type` and `message`."""
    ended_by: Mapped[str | None]
    """What ended it: `cotrail.core.ended_by`; NULL where it was cancelled, or a former version ended it."""
    halted: Mapped[Json | None]
    """Where a budget ended it: `cotrail.core.history.Halt`."""
    finished_at: Mapped[datetime | None]
    """When it ended, or was blocked."""
    opened: Mapped[str]
    """The digest of the question as it was submitted, and of its run's configuration."""
    digest: Mapped[str | None]
    """The digest of the question as it ended, and of all its steps."""
    changed_in: Mapped[int | None] = mapped_column(TransactionNumber)
    """The transaction that changed its status last; a trigger writes it."""


class RunConsumption(Base):
    """What the steps of a run with a budget took; added up in the transactions that record how they ended."""

    __tablename__ = "run_consumption"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    steps: Mapped[int]
    tokens: Mapped[int]
    seconds: Mapped[Decimal]
    money: Mapped[Decimal]
    """In US dollars."""


class Step(Base):
    """One action of a question; never changed once it has ended, unless `cotrail retry` opens a failed one again."""

    __tablename__ = "steps"
    __table_args__ = (
        one_of("state", StepState),
        _ended_or_without(
            "state",
            "result",
            "failure",
            "finished_at",
            "prompt_tokens",
            "cached_prompt_tokens",
            "generated_tokens",
            "milliseconds",
            "adopted_from",
            "digest",
        ),
        Index("steps_question_id_sequence_key", "question_id", "sequence", unique=True),
        Index("steps_run_id_ended_in_id_idx", "run_id", "ended_in", "id"),
        Index("steps_waiting_idx", "run_id", "id", postgresql_where=text("state = 'waiting'")),
        Index("steps_unsent_idx", "kind", "id", postgresql_where=text("state = 'ready' AND sent_at IS NULL")),
        Index("steps_sent_idx", "kind", "sent_at", postgresql_where=text("state = 'ready' AND sent_at IS NOT NULL")),
        Index("steps_leased_idx", "lease_until", postgresql_where=text("state = 'running'")),
        Index("steps_batched_idx", "run_id", postgresql_where=text("state = 'batched'")),
        Index("steps_shared_idx", "shared_in", "fingerprint", postgresql_where=text("shared_in IS NOT NULL")),
        Index("steps_adopted_from_idx", "adopted_from", postgresql_where=text("adopted_from IS NOT NULL")),
    )

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    question_id: Mapped[int] = mapped_column(ForeignKey("questions.id", ondelete="CASCADE"))
    sequence: Mapped[int]
    kind: Mapped[str]
    fingerprint: Mapped[str]
    shared_in: Mapped[str | None]
    """The experiment whose runs may adopt this step's result; NULL where none may."""
    adopted_from: Mapped[int | None]
    """The step that computed this one's result, which may have been pruned since: so this is no foreign key."""
    request: Mapped[Json]
    """The action, with the prompt's long parts as digests."""
    state: Mapped[StepState] = mapped_column(default=StepState.READY, server_default="ready")
    epoch: Mapped[int] = mapped_column(server_default="0")
    """Fencing token: how often the step was claimed. A worker may commit only under the epoch of its claim."""
    created_at: Mapped[datetime] = mapped_column(server_default=now)
    sent_at: Mapped[datetime | None]
    """The time at which its message was last sent, or about to be; NULL where it has to be sent."""
    not_before: Mapped[datetime | None]
    worker: Mapped[str | None]
    lease_until: Mapped[datetime | None]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    result: Mapped[Json | None]
    failure: Mapped[Json | None]
    prompt_tokens: Mapped[int | None]
    cached_prompt_tokens: Mapped[int | None]
    generated_tokens: Mapped[int | None]
    milliseconds: Mapped[float | None]
    previous: Mapped[str]
    """The digest of the question's record before the steps that were yielded together with this one."""
    digest: Mapped[str | None]
    """The digest of the step as it ended, `previous` included."""
    ended_in: Mapped[int | None] = mapped_column(TransactionNumber)
    """The transaction in which a step that has ended did so; a trigger writes it."""


class Attempt(Base):
    """One execution of a step. Work done twice shows here; a claim whose step wasn't begun leaves none."""

    __tablename__ = "attempts"

    step_id: Mapped[int] = mapped_column(ForeignKey("steps.id", ondelete="CASCADE"), primary_key=True)
    epoch: Mapped[int] = mapped_column(primary_key=True)
    worker: Mapped[str]
    started_at: Mapped[datetime] = mapped_column(server_default=now)
    ended_at: Mapped[datetime | None]
    outcome: Mapped[AttemptOutcome | None]
    error: Mapped[Json | None]


class Sentence(Base):
    """A sentence of a chain of thought, and the step that wrote it."""

    __tablename__ = "sentences"
    __table_args__ = (Index("sentences_question_id_idx", "question_id"),)

    step_id: Mapped[int] = mapped_column(ForeignKey("steps.id", ondelete="CASCADE"), primary_key=True)
    question_id: Mapped[int]
    position: Mapped[int]
    """Its place in the chain, from 0."""
    text: Mapped[str]


class Paragraph(Base):
    """The content of a paragraph, stored once however often it is found."""

    __tablename__ = "paragraphs"

    digest: Mapped[str] = mapped_column(primary_key=True)
    title: Mapped[str]
    text: Mapped[str]


class ParagraphSet(Base):
    """A paragraph that a step found, with its rank, score and query."""

    __tablename__ = "paragraph_sets"
    __table_args__ = (
        Index("paragraph_sets_question_id_idx", "question_id"),
        Index("paragraph_sets_digest_idx", "digest"),
    )

    step_id: Mapped[int] = mapped_column(ForeignKey("steps.id", ondelete="CASCADE"), primary_key=True)
    rank: Mapped[int] = mapped_column(primary_key=True)
    question_id: Mapped[int]
    query: Mapped[str]
    digest: Mapped[str] = mapped_column(ForeignKey("paragraphs.digest"))
    paragraph_id: Mapped[str]
    """The paragraph's id in its corpus."""
    score: Mapped[float]


class MadeParagraph(Base):
    """A paragraph that steps of a question refer to and none of its searches found: pinned, or made by its system.

    It keeps the paragraph from being pruned, as `ParagraphSet` does for those that were found.
    """

    __tablename__ = "made_paragraphs"
    __table_args__ = (Index("made_paragraphs_digest_idx", "digest"),)

    question_id: Mapped[int] = mapped_column(ForeignKey("questions.id", ondelete="CASCADE"), primary_key=True)
    digest: Mapped[str] = mapped_column(ForeignKey("paragraphs.digest"), primary_key=True)


class DemonstrationSet(Base):
    """Demonstrations that prompts refer to, stored once by digest."""

    __tablename__ = "demonstrations"

    digest: Mapped[str] = mapped_column(primary_key=True)
    body: Mapped[Json]


class Annotation(Base):
    """A person's mark of a sentence in a question's chain of thought."""

    __tablename__ = "annotations"
    __table_args__ = (Index("annotations_run_id_idx", "run_id"),)

    question_id: Mapped[int] = mapped_column(ForeignKey("questions.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    """The sentence's place in the chain, from 0."""
    annotator: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    is_true: Mapped[bool]
    note: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = mapped_column(server_default=now)


class CauseLabel(Base):
    """A person's cause of a question's wrong answer."""

    __tablename__ = "cause_labels"
    __table_args__ = (Index("cause_labels_run_id_idx", "run_id"),)

    question_id: Mapped[int] = mapped_column(ForeignKey("questions.id", ondelete="CASCADE"), primary_key=True)
    annotator: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    cause: Mapped[str]
    note: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = mapped_column(server_default=now)


class QuestionSummary(Base):
    """How a question that has ended came out, computed from its trace: what lists are filtered and sorted by."""

    __tablename__ = "question_summaries"
    __table_args__ = (
        Index("question_summaries_run_id_question_id_idx", "run_id", "question_id"),
        *(
            Index(f"question_summaries_run_id_{column}_idx", "run_id", column, "question_id")
            for column in ("graded", "steps", "milliseconds", "paid")
        ),
    )

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
    graded: Mapped[float] = mapped_column(Computed("COALESCE(f1, -1)"))
    paid: Mapped[float] = mapped_column(Computed("COALESCE(cost::double precision, tokens::double precision)"))
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
    __table_args__ = (
        Index("activities_project_id_idx", "project", "id"),
        Index("activities_subject_idx", "subject", "id", postgresql_where=text("subject IS NOT NULL")),
    )

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
    __table_args__ = (
        one_of("state", JobState),
        Index("jobs_project_created_at_id_idx", "project", "created_at", "id"),
        Index("jobs_open_idx", "created_at", "id", postgresql_where=text("state IN ('queued', 'running')")),
    )

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
    """An event of a run that a configured endpoint is to be told of; written where the event is."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        Index("webhook_deliveries_run_id_idx", "run_id"),
        Index("webhook_deliveries_next_at_idx", "next_at", postgresql_where=text("next_at IS NOT NULL")),
    )

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


experiments, runs, questions, steps, attempts, sentences, paragraphs, paragraph_sets, demonstrations, annotations = (
    cast(Table, table.__table__)
    for table in (
        Experiment,
        Run,
        Question,
        Step,
        Attempt,
        Sentence,
        Paragraph,
        ParagraphSet,
        DemonstrationSet,
        Annotation,
    )
)
"""The same as SQLAlchemy Core tables, for statements over many rows."""
run_consumption = cast(Table, RunConsumption.__table__)
made_paragraphs = cast(Table, MadeParagraph.__table__)
run_labels = cast(Table, RunLabel.__table__)
cause_labels = cast(Table, CauseLabel.__table__)
question_summaries, run_summaries = (cast(Table, table.__table__) for table in (QuestionSummary, SummarizedRun))
projects, tokens, activities, idempotency_keys, jobs, webhook_deliveries = (
    cast(Table, table.__table__) for table in (Project, Token, Activity, IdempotencyKey, Job, WebhookDelivery)
)
