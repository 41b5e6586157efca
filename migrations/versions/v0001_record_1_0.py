"""The tables of the record's format 1.0; its triggers and views stand in `migrations.guards`.

This is where a database begins. What came before was never released: a database of it is refused, see
`cotrail.models.schema.migrating`.
"""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP

from cotrail.migrations.guards import guard, unguard

revision = "0001"
down_revision = None

TABLES = (
    "demonstrations paragraphs projects tokens activities idempotency_keys jobs deployment experiments runs "
    "run_consumption run_labels run_summaries webhook_deliveries questions question_summaries annotations "
    "cause_labels made_paragraphs steps attempts batches batch_items paragraph_sets sentences"
)
"""In the order in which they refer to each other."""

NOW = sa.text("now()")


class Xid8(sa.types.UserDefinedType[int]):
    """A transaction's number that is never used again."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "xid8"


def _of(type_: Any) -> Callable[..., sa.Column[Any]]:
    def column(name: str, *further: Any, nullable: bool = False, **options: Any) -> sa.Column[Any]:
        return sa.Column(name, type_, *further, nullable=nullable, **options)

    return column


text, number, fraction, money, flag = map(_of, (sa.String(), sa.BigInteger(), sa.Double(), sa.Numeric(), sa.Boolean()))
json, time, transaction = map(_of, (JSONB(), TIMESTAMP(timezone=True), Xid8()))


def _index(name: str, table: str, columns: str, *, unique: bool = False, where: str = "") -> None:
    op.create_index(name, table, columns.split(), unique=unique, postgresql_where=sa.text(where) if where else None)


def upgrade() -> None:
    _contents()
    _service()
    _runs()
    _questions()
    _steps()
    op.execute("INSERT INTO projects (name) VALUES ('default')")
    guard()


def downgrade() -> None:
    unguard()
    for table in reversed(TABLES.split()):
        op.drop_table(table)


def _contents() -> None:
    """Texts that questions and steps refer to by their SHA-256."""
    op.create_table("demonstrations", text("digest", primary_key=True), json("body"))
    op.create_table("paragraphs", text("digest", primary_key=True), text("title"), text("text"))


def _service() -> None:
    """The service: whose what is, who did what, and queued work."""
    op.create_table(
        "projects",
        text("name", primary_key=True),
        time("created_at", server_default=NOW),
        json("corpora", nullable=True),
        json("models", nullable=True),
        number("open_questions", nullable=True),
        money("money", nullable=True),
        number("stored_bytes", nullable=True),
    )
    op.create_table(
        "tokens",
        text("id", primary_key=True),
        text("project", sa.ForeignKey("projects.name")),
        text("name"),
        json("scopes"),
        text("digest"),
        text("person", nullable=True),
        time("created_at", server_default=NOW),
        text("created_by"),
        time("expires_at", nullable=True),
        time("revoked_at", nullable=True),
        time("used_at", nullable=True),
        sa.UniqueConstraint("digest"),
    )
    op.create_table(
        "activities",
        number("id", sa.Identity(), primary_key=True),
        time("at", server_default=NOW),
        text("project"),
        text("actor"),
        text("token_id", nullable=True),
        text("operation"),
        text("subject", nullable=True),
        number("status"),
        text("request_id"),
    )
    _index("activities_project_id_idx", "activities", "project id")
    _index("activities_subject_idx", "activities", "subject id", where="subject IS NOT NULL")
    op.create_table(
        "idempotency_keys",
        text("project"),
        text("key"),
        text("request"),
        json("made"),
        time("created_at", server_default=NOW),
        sa.PrimaryKeyConstraint("project", "key"),
    )
    op.create_table(
        "jobs",
        text("id", primary_key=True),
        text("project", sa.ForeignKey("projects.name")),
        text("kind"),
        json("request"),
        text("state", server_default="queued"),
        number("progress", server_default="0"),
        number("failures", server_default="0"),
        json("result", nullable=True),
        json("error", nullable=True),
        time("created_at", server_default=NOW),
        time("started_at", nullable=True),
        time("finished_at", nullable=True),
        number("epoch", server_default="0"),
        text("worker", nullable=True),
        time("lease_until", nullable=True),
        sa.CheckConstraint("state IN ('queued', 'running', 'finished', 'failed', 'cancelled')", name="state"),
    )
    _index("jobs_open_idx", "jobs", "created_at id", where="state IN ('queued', 'running')")
    _index("jobs_project_created_at_id_idx", "jobs", "project created_at id")
    op.create_table(
        "deployment",
        flag("one", primary_key=True, server_default=sa.text("true")),
        text("release"),
        text("revision"),
        text("format"),
        text("broker", nullable=True),
        text("broker_address", nullable=True),
        sa.CheckConstraint("one", name="one"),
    )


def _runs() -> None:
    """Experiments and runs, with what a run consumed and what it is called."""
    op.create_table(
        "experiments",
        text("id", primary_key=True),
        time("created_at", server_default=NOW),
        json("plan"),
        text("project", sa.ForeignKey("projects.name"), server_default="default"),
    )
    _index("experiments_project_idx", "experiments", "project")
    op.create_table(
        "runs",
        text("id", primary_key=True),
        time("created_at", server_default=NOW),
        text("project", sa.ForeignKey("projects.name"), server_default="default"),
        text("experiment_id", sa.ForeignKey("experiments.id", ondelete="CASCADE"), nullable=True),
        text("cell", nullable=True),
        flag("reuse"),
        text("desired_state"),
        number("priority", server_default="0"),
        flag("served", server_default=sa.text("false")),
        flag("batched", server_default=sa.text("false")),
        flag("asked", server_default=sa.text("false")),
        number("size"),
        text("origin", nullable=True),
        text("forked_at", nullable=True),
        text("system"),
        number("system_version"),
        json("settings"),
        text("dataset"),
        text("corpus", nullable=True),
        text("corpus_revision"),
        json("knowledge", server_default=sa.text("'{}'")),
        text("model_name"),
        text("model"),
        text("embedder_name", server_default=""),
        text("embedder", server_default=""),
        text("entailer_name", server_default=""),
        text("entailer", server_default=""),
        text("profile"),
        fraction("temperature"),
        number("seed"),
        json("demonstrations"),
        json("provenance"),
        text("opened"),
        text("digest", nullable=True),
        sa.CheckConstraint("desired_state IN ('active', 'paused', 'cancelled', 'pruned')", name="desired_state"),
    )
    _index("runs_created_at_id_idx", "runs", "created_at id")
    _index("runs_experiment_id_cell_key", "runs", "experiment_id cell", unique=True)
    op.create_index(
        "runs_judged_idx",
        "runs",
        [sa.text("(settings -> 'runs')")],
        postgresql_where=sa.text("system = 'judge'"),
        postgresql_using="gin",
    )
    _index("runs_project_created_at_id_idx", "runs", "project created_at id")
    _index("runs_unsealed_idx", "runs", "created_at id", where="digest IS NULL")
    op.create_table(
        "run_consumption",
        text("run_id", sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        number("steps"),
        number("tokens"),
        money("seconds"),
        money("money"),
        json("raised", nullable=True),
    )
    op.create_table(
        "run_labels",
        text("run_id", sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        text("name", nullable=True),
        json("tags", server_default=sa.text("'[]'")),
    )
    _index("run_labels_name_idx", "run_labels", "name", where="name IS NOT NULL")
    op.create_table(
        "run_summaries",
        text("run_id", sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        number("version"),
        text("digest", nullable=True),
        flag("complete", server_default=sa.text("false")),
        time("through_at", nullable=True),
        number("through_id", nullable=True),
        json("counts", server_default=sa.text("'{}'")),
        json("scores", server_default=sa.text("'{}'")),
    )
    op.create_table(
        "webhook_deliveries",
        text("id", primary_key=True),
        text("run_id", sa.ForeignKey("runs.id", ondelete="CASCADE")),
        text("endpoint"),
        json("event"),
        time("created_at", server_default=NOW),
        number("attempts", server_default="0"),
        time("next_at", nullable=True, server_default=NOW),
        time("delivered_at", nullable=True),
        text("problem", nullable=True),
    )
    _index("webhook_deliveries_next_at_idx", "webhook_deliveries", "next_at", where="next_at IS NOT NULL")
    _index("webhook_deliveries_run_id_idx", "webhook_deliveries", "run_id")


def _questions() -> None:
    """Questions, with what people and the service say of them."""
    op.create_table(
        "questions",
        number("id", sa.Identity(), primary_key=True),
        text("run_id", sa.ForeignKey("runs.id", ondelete="CASCADE")),
        number("position"),
        text("key"),
        text("text"),
        json("answers"),
        json("gold"),
        json("pinned", nullable=True),
        json("evidence", server_default=sa.text("'[]'")),
        text("kind"),
        json("judged", nullable=True),
        text("status"),
        text("answer", nullable=True),
        json("sentences", nullable=True),
        json("collected", nullable=True),
        json("weighing", nullable=True),
        json("reason", nullable=True),
        text("ended_by", nullable=True),
        json("halted", nullable=True),
        time("finished_at", nullable=True),
        text("opened"),
        text("digest", nullable=True),
        transaction("changed_in", nullable=True),
        sa.CheckConstraint(
            "status IN ('finished', 'failed', 'cancelled') OR (answer IS NULL AND sentences IS NULL AND "
            "collected IS NULL AND weighing IS NULL AND ended_by IS NULL AND digest IS NULL)",
            name="end",
        ),
        sa.CheckConstraint("status IN ('open', 'finished', 'failed', 'blocked', 'cancelled')", name="status"),
    )
    _index("questions_ended_idx", "questions", "run_id finished_at id", where="finished_at IS NOT NULL")
    _index("questions_run_id_changed_in_id_idx", "questions", "run_id changed_in id")
    _index("questions_run_id_key_key", "questions", "run_id key", unique=True)
    _index("questions_standing_idx", "questions", "run_id status id")
    op.create_table(
        "question_summaries",
        number("question_id", sa.ForeignKey("questions.id", ondelete="CASCADE"), primary_key=True),
        text("run_id", sa.ForeignKey("runs.id", ondelete="CASCADE")),
        number("version"),
        text("outcome"),
        text("cause", nullable=True),
        fraction("f1", nullable=True),
        fraction("recall", nullable=True),
        json("scores"),
        flag("limited"),
        number("steps"),
        number("retries"),
        number("tokens"),
        fraction("milliseconds"),
        money("cost", nullable=True),
        fraction("graded", sa.Computed("COALESCE(f1, -1)", persisted=True)),
        fraction("paid", sa.Computed("COALESCE(cost::double precision, tokens::double precision)", persisted=True)),
    )
    _index("question_summaries_run_id_graded_idx", "question_summaries", "run_id graded question_id")
    _index("question_summaries_run_id_milliseconds_idx", "question_summaries", "run_id milliseconds question_id")
    _index("question_summaries_run_id_paid_idx", "question_summaries", "run_id paid question_id")
    _index("question_summaries_run_id_question_id_idx", "question_summaries", "run_id question_id")
    _index("question_summaries_run_id_steps_idx", "question_summaries", "run_id steps question_id")
    op.create_table(
        "annotations",
        number("question_id", sa.ForeignKey("questions.id", ondelete="CASCADE")),
        number("position"),
        text("annotator"),
        text("run_id", sa.ForeignKey("runs.id", ondelete="CASCADE")),
        flag("is_true"),
        text("note"),
        time("created_at", server_default=NOW),
        sa.PrimaryKeyConstraint("question_id", "position", "annotator"),
    )
    _index("annotations_run_id_idx", "annotations", "run_id")
    op.create_table(
        "cause_labels",
        number("question_id", sa.ForeignKey("questions.id", ondelete="CASCADE")),
        text("annotator"),
        text("run_id", sa.ForeignKey("runs.id", ondelete="CASCADE")),
        text("cause"),
        text("note"),
        time("created_at", server_default=NOW),
        sa.PrimaryKeyConstraint("question_id", "annotator"),
    )
    _index("cause_labels_run_id_idx", "cause_labels", "run_id")
    op.create_table(
        "made_paragraphs",
        number("question_id", sa.ForeignKey("questions.id", ondelete="CASCADE")),
        text("digest", sa.ForeignKey("paragraphs.digest")),
        sa.PrimaryKeyConstraint("question_id", "digest"),
    )
    _index("made_paragraphs_digest_idx", "made_paragraphs", "digest")


def _steps() -> None:
    """Steps, their attempts and batches, and what they found and wrote."""
    op.create_table(
        "steps",
        number("id", sa.Identity(), primary_key=True),
        text("run_id", sa.ForeignKey("runs.id", ondelete="CASCADE")),
        number("question_id", sa.ForeignKey("questions.id", ondelete="CASCADE")),
        number("sequence"),
        text("kind"),
        text("fingerprint"),
        text("shared_in", nullable=True),
        number("adopted_from", nullable=True),
        json("request"),
        text("state", server_default="ready"),
        number("epoch", server_default="0"),
        time("created_at", server_default=NOW),
        time("sent_at", nullable=True),
        time("not_before", nullable=True),
        text("worker", nullable=True),
        time("lease_until", nullable=True),
        time("started_at", nullable=True),
        time("finished_at", nullable=True),
        json("result", nullable=True),
        json("failure", nullable=True),
        number("prompt_tokens", nullable=True),
        number("cached_prompt_tokens", nullable=True),
        number("generated_tokens", nullable=True),
        fraction("milliseconds", nullable=True),
        json("edit", nullable=True),
        text("previous"),
        text("digest", nullable=True),
        transaction("ended_in", nullable=True),
        sa.CheckConstraint(
            "state IN ('finished', 'failed', 'cancelled') OR (result IS NULL AND failure IS NULL AND "
            "finished_at IS NULL AND prompt_tokens IS NULL AND cached_prompt_tokens IS NULL AND "
            "generated_tokens IS NULL AND milliseconds IS NULL AND adopted_from IS NULL AND digest IS NULL)",
            name="end",
        ),
        sa.CheckConstraint(
            "state IN ('waiting', 'ready', 'running', 'batched', 'finished', 'failed', 'cancelled', 'blocked')",
            name="state",
        ),
    )
    _index("steps_adopted_from_idx", "steps", "adopted_from", where="adopted_from IS NOT NULL")
    _index("steps_batched_idx", "steps", "run_id", where="state = 'batched'")
    _index("steps_leased_idx", "steps", "lease_until", where="state = 'running'")
    _index("steps_question_id_sequence_key", "steps", "question_id sequence", unique=True)
    _index("steps_run_id_ended_in_id_idx", "steps", "run_id ended_in id")
    _index("steps_sent_idx", "steps", "kind sent_at", where="state = 'ready' AND sent_at IS NOT NULL")
    _index("steps_shared_idx", "steps", "shared_in fingerprint", where="shared_in IS NOT NULL")
    _index("steps_unsent_idx", "steps", "kind id", where="state = 'ready' AND sent_at IS NULL")
    _index("steps_waiting_idx", "steps", "run_id id", where="state = 'waiting'")
    op.create_table(
        "attempts",
        number("step_id", sa.ForeignKey("steps.id", ondelete="CASCADE")),
        number("epoch"),
        text("worker"),
        time("started_at", server_default=NOW),
        time("ended_at", nullable=True),
        text("outcome", nullable=True),
        json("error", nullable=True),
        sa.PrimaryKeyConstraint("step_id", "epoch"),
    )
    op.create_table(
        "batches",
        text("key", primary_key=True),
        text("model_name"),
        sa.Column("state", sa.Text(), server_default="forming", nullable=False),
        text("sender"),
        number("lines"),
        text("digest"),
        text("provider_id", nullable=True),
        time("created_at", server_default=NOW),
        time("sent_at", nullable=True),
        time("checked_at", nullable=True),
        time("missing_since", nullable=True),
        time("expires_at", nullable=True),
        time("ended_at", nullable=True),
        number("done", server_default=sa.text("0")),
        number("answered", server_default=sa.text("0")),
        number("unanswered", server_default=sa.text("0")),
        number("unneeded", server_default=sa.text("0")),
        flag("too_large", server_default=sa.text("false")),
        text("problem", nullable=True),
        sa.CheckConstraint("state IN ('forming', 'sent', 'ended', 'failed')", name="state"),
    )
    _index("batches_open_idx", "batches", "model_name", where="state IN ('forming', 'sent')")
    op.create_table(
        "batch_items",
        number("step_id", sa.ForeignKey("steps.id", ondelete="CASCADE"), primary_key=True),
        text("model_name"),
        text("body", nullable=True),
        text("batch", sa.ForeignKey("batches.key"), nullable=True),
        sa.Column("answers", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        time("since", server_default=NOW),
        number("returned", server_default=sa.text("0")),
        number("lost", server_default=sa.text("0")),
        number("lost_tokens", server_default=sa.text("0")),
    )
    _index("batch_items_batch_idx", "batch_items", "batch")
    _index("batch_items_unsent_idx", "batch_items", "model_name", where="batch IS NULL AND body IS NOT NULL")
    op.create_table(
        "paragraph_sets",
        number("step_id", sa.ForeignKey("steps.id", ondelete="CASCADE")),
        number("rank"),
        number("question_id"),
        text("query"),
        text("digest", sa.ForeignKey("paragraphs.digest")),
        text("paragraph_id"),
        fraction("score"),
        sa.PrimaryKeyConstraint("step_id", "rank"),
    )
    _index("paragraph_sets_digest_idx", "paragraph_sets", "digest")
    _index("paragraph_sets_question_id_idx", "paragraph_sets", "question_id")
    op.create_table(
        "sentences",
        number("step_id", sa.ForeignKey("steps.id", ondelete="CASCADE"), primary_key=True),
        number("question_id"),
        number("position"),
        text("text"),
    )
    _index("sentences_question_id_idx", "sentences", "question_id")
