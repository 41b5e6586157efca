"""The audit store."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "demonstrations",
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("body", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("demonstrations_pkey")),
    )
    op.create_table(
        "paragraphs",
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("paragraphs_pkey")),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("system", sa.String(), nullable=False),
        sa.Column("system_version", sa.BigInteger(), nullable=False),
        sa.Column("settings", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("dataset", sa.String(), nullable=False),
        sa.Column("corpus", sa.String(), nullable=True),
        sa.Column("corpus_revision", sa.String(), nullable=False),
        sa.Column("model_name", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("profile", sa.String(), nullable=False),
        sa.Column("temperature", sa.Double(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("demonstrations", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("provenance", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.CheckConstraint("state IN ('active', 'paused', 'cancelled')", name=op.f("runs_state_check")),
        sa.PrimaryKeyConstraint("id", name=op.f("runs_pkey")),
    )
    op.create_table(
        "questions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("answers", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("gold", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("answer", sa.String(), nullable=True),
        sa.Column("sentences", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("collected", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("reason", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("finished_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status IN ('open', 'finished', 'failed', 'blocked', 'cancelled')", name=op.f("questions_status_check")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("questions_run_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("questions_pkey")),
    )
    op.create_index("questions_run_id_key_key", "questions", ["run_id", "key"], unique=True)
    op.create_index("questions_run_id_status_idx", "questions", ["run_id", "status"], unique=False)
    op.create_table(
        "steps",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("question_id", sa.BigInteger(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("request", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("state", sa.String(), server_default="ready", nullable=False),
        sa.Column("epoch", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("sent_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("not_before", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("worker", sa.String(), nullable=True),
        sa.Column("lease_until", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("started_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("finished_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("result", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("failure", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cached_prompt_tokens", sa.BigInteger(), nullable=True),
        sa.Column("generated_tokens", sa.BigInteger(), nullable=True),
        sa.Column("milliseconds", sa.Double(), nullable=True),
        sa.CheckConstraint("state IN ('ready', 'running', 'finished', 'failed')", name=op.f("steps_state_check")),
        sa.ForeignKeyConstraint(
            ["question_id"], ["questions.id"], name=op.f("steps_question_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("steps_run_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("steps_pkey")),
    )
    op.create_index(
        "steps_leased_idx", "steps", ["lease_until"], unique=False, postgresql_where=sa.text("state = 'running'")
    )
    op.create_index(
        "steps_open_idx", "steps", ["kind", "sent_at"], unique=False, postgresql_where=sa.text("state = 'ready'")
    )
    op.create_index("steps_question_id_sequence_key", "steps", ["question_id", "sequence"], unique=True)
    op.create_index("steps_run_id_idx", "steps", ["run_id"], unique=False)
    op.create_table(
        "attempts",
        sa.Column("step_id", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("started_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("ended_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("error", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.ForeignKeyConstraint(["step_id"], ["steps.id"], name=op.f("attempts_step_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("step_id", "epoch", name=op.f("attempts_pkey")),
    )
    op.create_table(
        "paragraph_sets",
        sa.Column("step_id", sa.BigInteger(), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.Column("question_id", sa.BigInteger(), nullable=False),
        sa.Column("query", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("paragraph_id", sa.String(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["digest"], ["paragraphs.digest"], name=op.f("paragraph_sets_digest_fkey")),
        sa.ForeignKeyConstraint(
            ["step_id"], ["steps.id"], name=op.f("paragraph_sets_step_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("step_id", "rank", name=op.f("paragraph_sets_pkey")),
    )
    op.create_index("paragraph_sets_question_id_idx", "paragraph_sets", ["question_id"], unique=False)
    op.create_table(
        "sentences",
        sa.Column("step_id", sa.BigInteger(), nullable=False),
        sa.Column("question_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["step_id"], ["steps.id"], name=op.f("sentences_step_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("step_id", name=op.f("sentences_pkey")),
    )
    op.create_index("sentences_question_id_idx", "sentences", ["question_id"], unique=False)


def downgrade() -> None:
    op.drop_index("sentences_question_id_idx", table_name="sentences")
    op.drop_table("sentences")
    op.drop_index("paragraph_sets_question_id_idx", table_name="paragraph_sets")
    op.drop_table("paragraph_sets")
    op.drop_table("attempts")
    op.drop_index("steps_run_id_idx", table_name="steps")
    op.drop_index("steps_question_id_sequence_key", table_name="steps")
    op.drop_index("steps_open_idx", table_name="steps", postgresql_where=sa.text("state = 'ready'"))
    op.drop_index("steps_leased_idx", table_name="steps", postgresql_where=sa.text("state = 'running'"))
    op.drop_table("steps")
    op.drop_index("questions_run_id_status_idx", table_name="questions")
    op.drop_index("questions_run_id_key_key", table_name="questions")
    op.drop_table("questions")
    op.drop_table("runs")
    op.drop_table("paragraphs")
    op.drop_table("demonstrations")
