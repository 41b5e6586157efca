"""Experiments, steps that runs share, pinned passages and annotations."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"

JSON = postgresql.JSONB(astext_type=sa.Text())
TIME = postgresql.TIMESTAMP(timezone=True)


def upgrade() -> None:
    op.create_table(
        "experiments",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("created_at", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("plan", JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("experiments_pkey")),
    )
    op.add_column("runs", sa.Column("experiment_id", sa.String(), nullable=True))
    op.add_column("runs", sa.Column("cell", sa.String(), nullable=True))
    op.add_column("runs", sa.Column("reuse", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.alter_column("runs", "reuse", server_default=None)
    op.create_foreign_key(
        op.f("runs_experiment_id_fkey"), "runs", "experiments", ["experiment_id"], ["id"], ondelete="CASCADE"
    )
    op.create_index("runs_experiment_id_cell_key", "runs", ["experiment_id", "cell"], unique=True)
    op.add_column("questions", sa.Column("pinned", JSON, nullable=True))
    op.add_column("questions", sa.Column("kind", sa.String(), server_default="", nullable=False))
    op.alter_column("questions", "kind", server_default=None)
    op.add_column("steps", sa.Column("shared_in", sa.String(), nullable=True))
    op.add_column("steps", sa.Column("adopted_from", sa.BigInteger(), nullable=True))
    op.create_foreign_key(
        op.f("steps_adopted_from_fkey"), "steps", "steps", ["adopted_from"], ["id"], ondelete="SET NULL"
    )
    op.create_index(
        "steps_shared_idx", "steps", ["shared_in", "fingerprint"], postgresql_where=sa.text("shared_in IS NOT NULL")
    )
    op.create_index(
        "steps_adopted_from_idx", "steps", ["adopted_from"], postgresql_where=sa.text("adopted_from IS NOT NULL")
    )
    op.create_table(
        "annotations",
        sa.Column("question_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("annotator", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("is_true", sa.Boolean(), nullable=False),
        sa.Column("note", sa.String(), nullable=False),
        sa.Column("created_at", TIME, server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["question_id"], ["questions.id"], name=op.f("annotations_question_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("annotations_run_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("question_id", "position", "annotator", name=op.f("annotations_pkey")),
    )
    op.create_index("annotations_run_id_idx", "annotations", ["run_id"])


def downgrade() -> None:
    op.drop_table("annotations")
    op.drop_index("steps_adopted_from_idx", table_name="steps")
    op.drop_index("steps_shared_idx", table_name="steps")
    op.drop_column("steps", "adopted_from")
    op.drop_column("steps", "shared_in")
    op.drop_column("questions", "kind")
    op.drop_column("questions", "pinned")
    op.drop_index("runs_experiment_id_cell_key", table_name="runs")
    op.drop_column("runs", "reuse")
    op.drop_column("runs", "cell")
    op.drop_column("runs", "experiment_id")
    op.drop_table("experiments")
