"""Constraints keep rows that haven't ended free of an end; runs are closed again, by a digest over a Merkle tree."""

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
    # Steps that were opened again kept this column.
    op.execute(f"UPDATE steps SET adopted_from = NULL WHERE state NOT IN {ENDED} AND adopted_from IS NOT NULL")
    for table, columns in ENDS.items():
        state, *names = columns.split()
        unheld = " AND ".join(f"{name} IS NULL" for name in names)
        condition = f"{state} IN {ENDED} OR ({unheld})"
        # A wrong row must not stop the upgrade: `cotrail audit verify` reports it.
        wrong = op.get_bind().exec_driver_sql(f"SELECT EXISTS (SELECT 1 FROM {table} WHERE NOT ({condition}))").scalar()
        valid = "NOT VALID" if wrong else ""
        op.execute(f"ALTER TABLE {table} ADD CONSTRAINT {table}_end_check CHECK ({condition}) {valid}")
    _open_runs()


def downgrade() -> None:
    _open_runs()
    for table in ENDS:
        op.drop_constraint(op.f(f"{table}_end_check"), table, type_="check")


def _open_runs() -> None:
    """Unseal all runs; maintenance closes them again with the digest of its version."""
    op.execute("SET LOCAL cotrail.amending = 'on'")
    op.execute("UPDATE runs SET digest = NULL WHERE digest IS NOT NULL")
    op.execute("SET LOCAL cotrail.amending = 'off'")
