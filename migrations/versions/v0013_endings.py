"""Questions say what ended them and where a budget did; runs with budgets add up what their steps take."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0013"
down_revision = "0012"

SEALED = (
    "id run_id position key text answers gold pinned evidence kind opened status answer sentences collected weighing "
    "reason finished_at"
)
ENDS = "answer sentences collected weighing digest"
HEAD = """
    encode(sha256(convert_to(opened || coalesce(
        (SELECT string_agg(digest, '' ORDER BY sequence) FROM steps WHERE question_id = questions.id), ''
    ), 'UTF8')), 'hex')
"""


def upgrade() -> None:
    op.add_column("questions", sa.Column("ended_by", sa.String(), nullable=True))
    op.add_column("questions", sa.Column("halted", postgresql.JSONB(), nullable=True))
    op.create_table(
        "run_consumption",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("steps", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Numeric(), nullable=False),
        sa.Column("money", sa.Numeric(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("run_consumption_run_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", name=op.f("run_consumption_pkey")),
    )
    _set_ends(f"{ENDS} ended_by")


def downgrade() -> None:
    _set_ends(ENDS)
    _seal_without()
    op.drop_table("run_consumption")
    op.drop_column("questions", "halted")
    op.drop_column("questions", "ended_by")


def _set_ends(columns: str) -> None:
    """Set which columns only a question that has ended may hold; rows that hold them already stay as they are."""
    op.execute("ALTER TABLE questions DROP CONSTRAINT questions_end_check")
    unheld = " AND ".join(f"{name} IS NULL" for name in columns.split())
    condition = f"status IN ('finished', 'failed', 'cancelled') OR ({unheld})"
    wrong = op.get_bind().exec_driver_sql(f"SELECT EXISTS (SELECT 1 FROM questions WHERE NOT ({condition}))").scalar()
    valid = "NOT VALID" if wrong else ""
    op.execute(f"ALTER TABLE questions ADD CONSTRAINT questions_end_check CHECK ({condition}) {valid}")


def _seal_without() -> None:
    """Seal questions without the column, where digests cover it, and have their runs closed again."""
    columns = ", ".join(
        "to_char(timezone('UTC', finished_at), 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
        if name == "finished_at"
        else f"questions.{name}::text"
        for name in SEALED.split()
    )
    op.execute("SET LOCAL cotrail.amending = 'on'")
    op.execute(
        "UPDATE runs SET digest = NULL WHERE digest IS NOT NULL "
        "AND EXISTS (SELECT 1 FROM questions WHERE run_id = runs.id AND ended_by IS NOT NULL)"
    )
    op.execute(
        f"UPDATE questions SET ended_by = NULL, digest = encode(sha256(convert_to("
        f"json_build_array({columns}, {HEAD})::text, 'UTF8')), 'hex') WHERE ended_by IS NOT NULL"
    )
    op.execute("SET LOCAL cotrail.amending = 'off'")
