"""Steps may be asked in batches; of runs that began before none is."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0014"
down_revision = "0013"

STATES = "'waiting', 'ready', 'running', 'finished', 'failed', 'cancelled', 'blocked'"
NOW, ZERO = sa.text("now()"), sa.text("0")

# As of revision 0011, with the states of steps under way in a place of their own.
RUN_STATES = """
    CREATE OR REPLACE VIEW run_states AS
    SELECT
        id,
        CASE
            WHEN desired_state IN ('cancelled', 'pruned') THEN desired_state
            WHEN EXISTS (SELECT FROM questions WHERE run_id = runs.id AND status = 'open') AND NOT (
                digest IS NULL AND desired_state = 'active' AND (
                    SELECT count(*) = 20 AND bool_and(status = 'blocked') AND count(DISTINCT cause) = 1
                    FROM (
                        SELECT status, reason->>'type' AS cause FROM questions
                        WHERE run_id = runs.id AND finished_at IS NOT NULL
                        ORDER BY finished_at DESC, id DESC LIMIT 20
                    ) AS latest
                ) AND NOT EXISTS (
                    SELECT FROM steps JOIN questions ON questions.id = question_id
                    WHERE steps.run_id = runs.id AND status = 'open' AND steps.state IN ({under_way})
                )
            ) THEN CASE desired_state WHEN 'paused' THEN 'paused' ELSE 'running' END
            WHEN EXISTS (SELECT FROM questions WHERE run_id = runs.id AND status = 'blocked') THEN 'blocked'
            ELSE 'finished'
        END AS state
    FROM runs
"""


def upgrade() -> None:
    op.add_column("runs", sa.Column("batched", sa.Boolean(), nullable=False, server_default=sa.false()))
    _set_states(f"{STATES}, 'batched'")
    op.create_index("steps_batched_idx", "steps", ["run_id"], postgresql_where=sa.text("state = 'batched'"))
    op.create_table(
        "batches",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("model_name", sa.String(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False, server_default="forming"),
        sa.Column("sender", sa.String(), nullable=False),
        sa.Column("lines", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("provider_id", sa.String()),
        sa.Column("created_at", TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
        *(
            sa.Column(name, TIMESTAMP(timezone=True))
            for name in ("sent_at", "checked_at", "missing_since", "expires_at", "ended_at")
        ),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False, server_default=ZERO)
            for name in ("done", "answered", "unanswered", "unneeded")
        ),
        sa.Column("too_large", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("problem", sa.String()),
        sa.CheckConstraint("state IN ('forming', 'sent', 'ended', 'failed')", name=op.f("batches_state_check")),
        sa.PrimaryKeyConstraint("key", name=op.f("batches_pkey")),
    )
    op.create_index(
        "batches_open_idx", "batches", ["model_name"], postgresql_where=sa.text("state IN ('forming', 'sent')")
    )
    op.create_table(
        "batch_items",
        sa.Column("step_id", sa.BigInteger(), nullable=False),
        sa.Column("model_name", sa.String(), nullable=False),
        sa.Column("body", sa.String()),
        sa.Column("batch", sa.String()),
        sa.Column("answers", sa.ARRAY(sa.Text()), nullable=False, server_default=sa.text("'{}'")),
        sa.Column("since", TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
        sa.Column("returned", sa.BigInteger(), nullable=False, server_default=ZERO),
        sa.ForeignKeyConstraint(["step_id"], ["steps.id"], name=op.f("batch_items_step_id_fkey"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["batch"], ["batches.key"], name=op.f("batch_items_batch_fkey")),
        sa.PrimaryKeyConstraint("step_id", name=op.f("batch_items_pkey")),
    )
    op.create_index("batch_items_batch_idx", "batch_items", ["batch"])
    op.create_index(
        "batch_items_unsent_idx",
        "batch_items",
        ["model_name"],
        postgresql_where=sa.text("batch IS NULL AND body IS NOT NULL"),
    )
    op.execute(RUN_STATES.format(under_way="'ready', 'running', 'batched'"))


def downgrade() -> None:
    op.execute(RUN_STATES.format(under_way="'ready', 'running'"))
    op.drop_table("batch_items")
    op.drop_table("batches")
    op.drop_index("steps_batched_idx", table_name="steps")
    # Whoever waits for a batch asks live instead.
    op.execute("UPDATE steps SET state = 'ready', sent_at = NULL, not_before = NULL WHERE state = 'batched'")
    _set_states(STATES)
    op.drop_column("runs", "batched")


def _set_states(states: str) -> None:
    op.drop_constraint(op.f("steps_state_check"), "steps")
    op.create_check_constraint(op.f("steps_state_check"), "steps", f"state IN ({states})")
