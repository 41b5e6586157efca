"""People label the causes of wrong answers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_table(
        "cause_labels",
        sa.Column("question_id", sa.BigInteger(), nullable=False),
        sa.Column("annotator", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("cause", sa.String(), nullable=False),
        sa.Column("note", sa.String(), nullable=False),
        sa.Column("created_at", TIMESTAMP(timezone=True), nullable=False, server_default=sa.text("now()")),
        sa.ForeignKeyConstraint(
            ["question_id"], ["questions.id"], name=op.f("cause_labels_question_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("cause_labels_run_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("question_id", "annotator", name=op.f("cause_labels_pkey")),
    )
    op.create_index("cause_labels_run_id_idx", "cause_labels", ["run_id"])


def downgrade() -> None:
    op.drop_table("cause_labels")
