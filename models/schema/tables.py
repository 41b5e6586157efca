"""The tables of what is asked, reasoned and found; those of the service and of batches are next to this file.

    experiments ──< runs ──< questions ──< steps ──< attempts
                                └──< annotations, cause_labels
                             ├──── sentences         (what a Reason step wrote)
                             └──< paragraph_sets >── paragraphs   (what a Retrieve step found)
    demonstrations: the examples that prompts begin with, once by digest

A step in state `ready` is its own outbox row: while it is unclaimed, its message may be sent again
(docs/architecture.md).
Final rows are never changed: triggers refuse it, and digests would show it (`cotrail.models.schema.seals`). Only
`cotrail retry` opens failed questions and steps again (`cotrail.models.commands.retrying`).
"""

from datetime import datetime
from decimal import Decimal
from typing import cast

from sqlalchemy import ColumnElement, ForeignKey, Identity, Table, and_, false, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cotrail.models.schema.base import Base, Json, TransactionNumber, no_entries, no_keys, now
from cotrail.models.schema.states import DEFAULT_PROJECT, AttemptOutcome, DesiredState, QuestionStatus, StepState


class Experiment(Base):
    """Runs that belong together; those that reuse steps do so among themselves."""

    __tablename__ = "experiments"

    id: Mapped[str] = mapped_column(primary_key=True)
    created_at: Mapped[datetime] = mapped_column(server_default=now)
    plan: Mapped[Json]
    """The experiment's file as it was read, every default spelled out."""
    project: Mapped[str] = mapped_column(ForeignKey("projects.name"), server_default=DEFAULT_PROJECT)


class Run(Base):
    """A submitted evaluation, with everything that decides its results."""

    __tablename__ = "runs"

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

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str | None]
    tags: Mapped[list[str]] = mapped_column(server_default=no_entries)


class Question(Base):
    """A question of a run, and in the end its answer."""

    __tablename__ = "questions"

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
    """The kinds that the dataset counts the question among: `cotrail.core.questions`."""
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
    """What ended it: `cotrail.core.history`; NULL where it was cancelled."""
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
    raised: Mapped[Json | None]
    """The budgets that a person gave the run after it was submitted; each question that went on is sealed with them."""


class Step(Base):
    """One action of a question; never changed once it has ended, unless `cotrail retry` opens a failed one again."""

    __tablename__ = "steps"

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
    edit: Mapped[Json | None]
    """What a person put in the place of a part of it, and who: `cotrail.core.edits.StepEdit`."""
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

    question_id: Mapped[int] = mapped_column(ForeignKey("questions.id", ondelete="CASCADE"), primary_key=True)
    annotator: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    cause: Mapped[str]
    note: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = mapped_column(server_default=now)


_ROWS = (Experiment, Run, Question, Step, Attempt, Sentence, Paragraph, ParagraphSet, DemonstrationSet, Annotation)
experiments, runs, questions, steps, attempts, sentences, paragraphs, paragraph_sets, demonstrations, annotations = (
    cast(Table, each.__table__) for each in _ROWS
)
"""The same as SQLAlchemy Core tables, for statements over many rows."""
run_consumption = cast(Table, RunConsumption.__table__)
made_paragraphs = cast(Table, MadeParagraph.__table__)
run_labels = cast(Table, RunLabel.__table__)
cause_labels = cast(Table, CauseLabel.__table__)


# Conditions that statements over steps have in common.

# Scalar subqueries rather than joins: given a join, the planner may begin with all open questions, or with all steps of
# a run or a question, and read thousands of rows to find a few.
_status = select(questions.c.status).where(questions.c.id == steps.c.question_id).scalar_subquery()
_desired_state = select(runs.c.desired_state).where(runs.c.id == steps.c.run_id).scalar_subquery()

QUESTION_OPEN: ColumnElement[bool] = _status == QuestionStatus.OPEN
"""The step's question is open."""

ACTIVE: ColumnElement[bool] = and_(QUESTION_OPEN, _desired_state == DesiredState.ACTIVE)
"""The step's question is open, and its run active."""

SERVED: ColumnElement[bool] = (
    select(runs.c.served).where(runs.c.id == steps.c.run_id).correlate(steps).scalar_subquery()
)
"""The language model of the step's run answers from a server or a script."""

ASKED: ColumnElement[bool] = select(runs.c.asked).where(runs.c.id == steps.c.run_id).correlate(steps).scalar_subquery()
"""The step's run is a question that somebody asked and waits for."""
