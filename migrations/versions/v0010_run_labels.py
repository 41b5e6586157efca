"""Runs have names and tags, which no digest covers; runs are found in the order in which they were submitted."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "run_labels",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("tags", JSONB(), nullable=False, server_default=sa.text("'[]'")),
        sa.PrimaryKeyConstraint("run_id", name=op.f("run_labels_pkey")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], ondelete="CASCADE", name=op.f("run_labels_run_id_fkey")),
    )
    op.create_index("run_labels_name_idx", "run_labels", ["name"], postgresql_where=sa.text("name IS NOT NULL"))
    op.create_index("runs_created_at_id_idx", "runs", ["created_at", "id"])


def downgrade() -> None:
    op.drop_index("runs_created_at_id_idx", table_name="runs")
    op.drop_table("run_labels")
