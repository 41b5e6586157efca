"""How questions came out, for lists of them; who submitted a run is found by its id."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    _add_questions()
    _add_runs()
    op.create_index(
        "activities_subject_idx", "activities", ["subject", "id"], postgresql_where=sa.text("subject IS NOT NULL")
    )


def _add_questions() -> None:
    op.create_table(
        "question_summaries",
        sa.Column("question_id", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("cause", sa.String(), nullable=True),
        sa.Column("f1", sa.Double(), nullable=True),
        sa.Column("recall", sa.Double(), nullable=True),
        sa.Column("scores", JSONB(), nullable=False),
        sa.Column("limited", sa.Boolean(), nullable=False),
        sa.Column("steps", sa.BigInteger(), nullable=False),
        sa.Column("retries", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("milliseconds", sa.Double(), nullable=False),
        sa.Column("cost", sa.Numeric(), nullable=True),
        sa.Column("graded", sa.Double(), sa.Computed("COALESCE(f1, -1)", persisted=True), nullable=False),
        sa.Column(
            "paid",
            sa.Double(),
            sa.Computed("COALESCE(cost::double precision, tokens::double precision)", persisted=True),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["question_id"], ["questions.id"], name=op.f("question_summaries_question_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("question_summaries_run_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("question_id", name=op.f("question_summaries_pkey")),
    )
    op.create_index("question_summaries_run_id_question_id_idx", "question_summaries", ["run_id", "question_id"])
    for column in ("graded", "steps", "milliseconds", "paid"):
        name = f"question_summaries_run_id_{column}_idx"
        op.create_index(name, "question_summaries", ["run_id", column, "question_id"])


def _add_runs() -> None:
    op.create_table(
        "run_summaries",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.String(), nullable=True),
        sa.Column("complete", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("through_at", TIMESTAMP(timezone=True), nullable=True),
        sa.Column("through_id", sa.BigInteger(), nullable=True),
        sa.Column("counts", JSONB(), nullable=False, server_default=sa.text("'{}'")),
        sa.Column("scores", JSONB(), nullable=False, server_default=sa.text("'{}'")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("run_summaries_run_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", name=op.f("run_summaries_pkey")),
    )


def downgrade() -> None:
    op.drop_index("activities_subject_idx", table_name="activities")
    op.drop_table("run_summaries")
    op.drop_table("question_summaries")
