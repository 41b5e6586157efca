"""Steps of blocked questions have a state of their own; indexes find questions by status and by their end."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

STATES = ("waiting", "ready", "running", "finished", "failed", "cancelled")


def upgrade() -> None:
    _set_states(*STATES, "blocked")
    op.execute(
        "UPDATE steps SET state = 'blocked' FROM questions "
        "WHERE questions.id = question_id AND status = 'blocked' AND state IN ('waiting', 'ready')"
    )
    op.execute("UPDATE questions SET finished_at = now() WHERE status = 'blocked' AND finished_at IS NULL")
    op.create_index("questions_standing_idx", "questions", ["run_id", "status", "id"])
    op.drop_index("questions_run_id_status_idx", table_name="questions")
    op.create_index(
        "questions_ended_idx",
        "questions",
        ["run_id", "finished_at", "id"],
        postgresql_where=sa.text("finished_at IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("questions_ended_idx", table_name="questions")
    op.create_index("questions_run_id_status_idx", "questions", ["run_id", "status"])
    op.drop_index("questions_standing_idx", table_name="questions")
    op.execute("UPDATE steps SET state = 'ready', sent_at = NULL WHERE state = 'blocked'")
    _set_states(*STATES)


def _set_states(*states: str) -> None:
    allowed = ", ".join(f"'{state}'" for state in states)
    op.drop_constraint(op.f("steps_state_check"), "steps", type_="check")
    op.create_check_constraint(op.f("steps_state_check"), "steps", f"state IN ({allowed})")
