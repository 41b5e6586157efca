"""Rows that haven't ended hold nothing of an end; a run's digest covers a tree, so that runs are closed anew."""

from alembic import op

revision = "0007"
down_revision = "0006"

ENDED = "('finished', 'failed', 'cancelled')"
ENDS = {
    "steps": "state result failure finished_at prompt_tokens cached_prompt_tokens generated_tokens milliseconds "
    "adopted_from digest",
    "questions": "status answer sentences collected weighing digest",
}
"""The column that says whether a row has ended, and those that only such a row may hold."""


def upgrade() -> None:
    # What a step that was opened again kept of its end.
    op.execute(f"UPDATE steps SET adopted_from = NULL WHERE state NOT IN {ENDED} AND adopted_from IS NOT NULL")
    for table, columns in ENDS.items():
        state, *names = columns.split()
        unheld = " AND ".join(f"{name} IS NULL" for name in names)
        condition = f"{state} IN {ENDED} OR ({unheld})"
        # Where a row that is there is wrong, that is for `cotrail audit verify` to say.
        wrong = op.get_bind().exec_driver_sql(f"SELECT EXISTS (SELECT 1 FROM {table} WHERE NOT ({condition}))").scalar()
        valid = "NOT VALID" if wrong else ""
        op.execute(f"ALTER TABLE {table} ADD CONSTRAINT {table}_end_check CHECK ({condition}) {valid}")
    _open_runs()


def downgrade() -> None:
    _open_runs()
    for table in ENDS:
        op.drop_constraint(op.f(f"{table}_end_check"), table, type_="check")


def _open_runs() -> None:
    """Maintenance closes them with the digest of its version."""
    op.execute("SET LOCAL cotrail.amending = 'on'")
    op.execute("UPDATE runs SET digest = NULL WHERE digest IS NOT NULL")
    op.execute("SET LOCAL cotrail.amending = 'off'")
