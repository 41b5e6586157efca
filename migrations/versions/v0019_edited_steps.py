"""Steps of forks hold what a person put in the place of their query, their prompt or their text."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0019"
down_revision = "0018"

FINAL = "OLD.state IN ('finished', 'failed', 'cancelled')"
EDITED = sa.text("SELECT run_id FROM steps WHERE edit IS NOT NULL ORDER BY id LIMIT 1")


def upgrade() -> None:
    op.add_column("steps", sa.Column("edit", postgresql.JSONB(), nullable=True))
    _guard(f"{FINAL} OR OLD.edit IS DISTINCT FROM NEW.edit")


def downgrade() -> None:
    if run := op.get_bind().execute(EDITED).scalar():
        # Their digests cover the column, and no former version could carry them out or verify them.
        raise RuntimeError(f"{run} has an edited step, which former versions don't know: prune such runs first")
    _guard(FINAL)
    op.drop_column("steps", "edit")


def _guard(condition: str) -> None:
    """Set what of a step never changes, even before it has ended (revision 0005)."""
    op.execute("DROP TRIGGER steps_guard_update ON steps")
    op.execute(
        f"CREATE TRIGGER steps_guard_update BEFORE UPDATE ON steps FOR EACH ROW WHEN ({condition}) "
        "EXECUTE FUNCTION cotrail_guard()"
    )
