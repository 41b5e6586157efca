"""The record's format 1.0: its tables, with the triggers that guard what is recorded, and the views of it.

This is where a database begins. What came before was never released: a database of it is refused, see
`cotrail.models.schema.migrating`.
"""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None

TABLES = (
    "demonstrations paragraphs projects tokens activities idempotency_keys jobs deployment experiments runs "
    "run_consumption run_labels run_summaries webhook_deliveries questions question_summaries annotations "
    "cause_labels made_paragraphs steps attempts batches batch_items paragraph_sets sentences"
)
"""In the order in which they refer to each other."""


def upgrade() -> None:
    op.execute(Path(__file__).with_suffix(".sql").read_text("utf-8"))


def downgrade() -> None:
    for view in ("run_states", "reasoning_marks", "reasoning_nodes"):
        op.execute(f"DROP VIEW {view}")
    # Triggers go with their functions.
    for function in ("cotrail_guard", "cotrail_step_changed", "cotrail_row_changed"):
        op.execute(f"DROP FUNCTION {function}() CASCADE")
    for table in reversed(TABLES.split()):
        op.drop_table(table)
