"""Questions of judges' runs hold the answers that they grade; a run's judges are found by its id."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0015"
down_revision = "0014"

ASKED = "run_id position key text answers gold pinned evidence kind opened"
HELD = sa.text("SELECT run_id FROM questions WHERE judged IS NOT NULL ORDER BY id LIMIT 1")


def upgrade() -> None:
    op.add_column("questions", sa.Column("judged", postgresql.JSONB(), nullable=True))
    _guard(f"{ASKED} judged")
    op.create_index(
        "runs_judged_idx",
        "runs",
        [sa.text("(settings -> 'runs')")],
        postgresql_using="gin",
        postgresql_where=sa.text("system = 'judge'"),
    )


def downgrade() -> None:
    if run := op.get_bind().execute(HELD).scalar():
        # Their digests cover the column, and no former version could carry them out or verify them.
        raise RuntimeError(f"{run} is a judge's run, which former versions don't know: prune such runs first")
    op.drop_index("runs_judged_idx", table_name="runs")
    _guard(ASKED)
    op.drop_column("questions", "judged")


def _guard(columns: str) -> None:
    """Set which columns of a question never change, even before it has ended (revision 0005)."""
    old, new = (", ".join(f"{row}.{name}" for name in columns.split()) for row in ("OLD", "NEW"))
    op.execute("DROP TRIGGER questions_guard_update ON questions")
    op.execute(
        "CREATE TRIGGER questions_guard_update BEFORE UPDATE ON questions FOR EACH ROW "
        f"WHEN (OLD.status IN ('finished', 'failed', 'cancelled') OR ROW({old}) IS DISTINCT FROM ROW({new})) "
        "EXECUTE FUNCTION cotrail_guard()"
    )
