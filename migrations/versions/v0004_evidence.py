"""Runs pin the models that compare sentences and the knowledge that is searched; questions record the weighing."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"

NAMES = ("embedder_name", "embedder", "entailer_name", "entailer")


def upgrade() -> None:
    op.add_column("runs", sa.Column("knowledge", postgresql.JSONB(), nullable=False, server_default=sa.text("'{}'")))
    for name in NAMES:
        op.add_column("runs", sa.Column(name, sa.String(), nullable=False, server_default=""))
    op.add_column(
        "questions", sa.Column("evidence", postgresql.JSONB(), nullable=False, server_default=sa.text("'[]'"))
    )
    op.add_column("questions", sa.Column("weighing", postgresql.JSONB(), nullable=True))


def downgrade() -> None:
    op.drop_column("questions", "weighing")
    op.drop_column("questions", "evidence")
    for name in reversed(NAMES):
        op.drop_column("runs", name)
    op.drop_column("runs", "knowledge")
