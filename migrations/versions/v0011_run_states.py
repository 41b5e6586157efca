"""`state` of a run is what people see, in a view; what a person wants of the run is its `desired_state`."""

from alembic import op

revision = "0011"
down_revision = "0010"

# A run is stopped while its latest 20 questions to end or be blocked are all blocked by one cause, and no step of it is
# under way.
STATES = """
    CREATE VIEW run_states AS
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
                    WHERE steps.run_id = runs.id AND status = 'open' AND steps.state IN ('ready', 'running')
                )
            ) THEN CASE desired_state WHEN 'paused' THEN 'paused' ELSE 'running' END
            WHEN EXISTS (SELECT FROM questions WHERE run_id = runs.id AND status = 'blocked') THEN 'blocked'
            ELSE 'finished'
        END AS state
    FROM runs
"""


def upgrade() -> None:
    op.alter_column("runs", "state", new_column_name="desired_state")
    op.execute("ALTER TABLE runs RENAME CONSTRAINT runs_state_check TO runs_desired_state_check")
    op.execute(STATES)


def downgrade() -> None:
    op.execute("DROP VIEW run_states")
    op.execute("ALTER TABLE runs RENAME CONSTRAINT runs_desired_state_check TO runs_state_check")
    op.alter_column("runs", "desired_state", new_column_name="state")
