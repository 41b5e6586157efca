"""The service: projects, tokens, uploads and queued work, and the order in which changes became visible."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP

revision = "0017"
down_revision = "0016"

ENDED = "{row}.state IN ('finished', 'failed', 'cancelled')"
OF_STEP = """
CREATE FUNCTION cotrail_step_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.ended_in := CASE WHEN NEW.state IN ('finished', 'failed', 'cancelled') THEN pg_current_xact_id() END;
    RETURN NEW;
END $$
"""
OF_ROW = """
CREATE FUNCTION cotrail_row_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_in := pg_current_xact_id();
    RETURN NEW;
END $$
"""
TRIGGERS = {
    "steps_ended_insert": f"BEFORE INSERT ON steps FOR EACH ROW WHEN ({ENDED.format(row='NEW')})",
    "steps_ended_update": (
        "BEFORE UPDATE OF state ON steps FOR EACH ROW "
        f"WHEN (NEW.state <> OLD.state AND ({ENDED.format(row='NEW')} OR {ENDED.format(row='OLD')}))"
    ),
    "questions_changed_insert": "BEFORE INSERT ON questions FOR EACH ROW",
    "questions_changed_update": (
        "BEFORE UPDATE OF status ON questions FOR EACH ROW WHEN (NEW.status IS DISTINCT FROM OLD.status)"
    ),
}
NOW = sa.text("now()")


class Xid8(sa.types.UserDefinedType[int]):
    """A transaction's number that is never used again."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "xid8"


def upgrade() -> None:
    _add_projects()
    _add_order()
    op.add_column("runs", sa.Column("asked", sa.Boolean(), nullable=False, server_default=sa.false()))
    _add_tokens()
    _add_work()


def _add_projects() -> None:
    op.create_table(
        "projects",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
        sa.Column("corpora", JSONB(), nullable=True),
        sa.Column("models", JSONB(), nullable=True),
        sa.Column("open_questions", sa.BigInteger(), nullable=True),
        sa.Column("money", sa.Numeric(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("projects_pkey")),
    )
    op.execute("INSERT INTO projects (name) VALUES ('default')")
    for table in ("runs", "experiments"):
        op.add_column(table, sa.Column("project", sa.String(), nullable=False, server_default="default"))
        op.create_foreign_key(op.f(f"{table}_project_fkey"), table, "projects", ["project"], ["name"])
    op.create_index("runs_project_created_at_id_idx", "runs", ["project", "created_at", "id"])
    op.create_index("experiments_project_idx", "experiments", ["project"])


def _add_order() -> None:
    """Note by which transaction steps ended and questions changed, which says what a reader has seen."""
    # What is there was visible before everything that follows. A default writes no row, however many there are.
    for table, column in (("steps", "ended_in"), ("questions", "changed_in")):
        op.add_column(table, sa.Column(column, Xid8(), nullable=True, server_default="0"))
        op.alter_column(table, column, server_default=None)
    op.drop_index("steps_run_id_idx", table_name="steps")
    op.create_index("steps_run_id_ended_in_id_idx", "steps", ["run_id", "ended_in", "id"])
    op.create_index("questions_run_id_changed_in_id_idx", "questions", ["run_id", "changed_in", "id"])
    op.execute(OF_STEP)
    op.execute(OF_ROW)
    for name, when in TRIGGERS.items():
        function = "cotrail_step_changed" if name.startswith("steps") else "cotrail_row_changed"
        op.execute(f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {function}()")


def _add_tokens() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("scopes", JSONB(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=True),
        sa.Column("created_at", TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("expires_at", TIMESTAMP(timezone=True), nullable=True),
        sa.Column("revoked_at", TIMESTAMP(timezone=True), nullable=True),
        sa.Column("used_at", TIMESTAMP(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["project"], ["projects.name"], name=op.f("tokens_project_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("tokens_pkey")),
        sa.UniqueConstraint("digest", name=op.f("tokens_digest_key")),
    )
    op.create_table(
        "activities",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("at", TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("token_id", sa.String(), nullable=True),
        sa.Column("operation", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=True),
        sa.Column("status", sa.BigInteger(), nullable=False),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("activities_pkey")),
    )
    op.create_index("activities_project_id_idx", "activities", ["project", "id"])
    op.create_table(
        "idempotency_keys",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("request", sa.String(), nullable=False),
        sa.Column("made", JSONB(), nullable=False),
        sa.Column("created_at", TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
        sa.PrimaryKeyConstraint("project", "key", name=op.f("idempotency_keys_pkey")),
    )


def _add_work() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("request", JSONB(), nullable=False),
        sa.Column("state", sa.String(), nullable=False, server_default="queued"),
        sa.Column("progress", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("failures", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("result", JSONB(), nullable=True),
        sa.Column("error", JSONB(), nullable=True),
        sa.Column("created_at", TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
        sa.Column("started_at", TIMESTAMP(timezone=True), nullable=True),
        sa.Column("finished_at", TIMESTAMP(timezone=True), nullable=True),
        sa.Column("epoch", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("worker", sa.String(), nullable=True),
        sa.Column("lease_until", TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'finished', 'failed', 'cancelled')", name=op.f("jobs_state_check")
        ),
        sa.ForeignKeyConstraint(["project"], ["projects.name"], name=op.f("jobs_project_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("jobs_pkey")),
    )
    op.create_index("jobs_project_created_at_id_idx", "jobs", ["project", "created_at", "id"])
    op.create_index(
        "jobs_open_idx", "jobs", ["created_at", "id"], postgresql_where=sa.text("state IN ('queued', 'running')")
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("endpoint", sa.String(), nullable=False),
        sa.Column("event", JSONB(), nullable=False),
        sa.Column("created_at", TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
        sa.Column("attempts", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("next_at", TIMESTAMP(timezone=True), nullable=True, server_default=NOW),
        sa.Column("delivered_at", TIMESTAMP(timezone=True), nullable=True),
        sa.Column("problem", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("webhook_deliveries_run_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("webhook_deliveries_pkey")),
    )
    op.create_index("webhook_deliveries_run_id_idx", "webhook_deliveries", ["run_id"])
    op.create_index(
        "webhook_deliveries_next_at_idx",
        "webhook_deliveries",
        ["next_at"],
        postgresql_where=sa.text("next_at IS NOT NULL"),
    )


def downgrade() -> None:
    for table in ("webhook_deliveries", "jobs", "idempotency_keys", "activities", "tokens"):
        op.drop_table(table)
    op.drop_column("runs", "asked")
    for name in TRIGGERS:
        op.execute(f"DROP TRIGGER {name} ON {name.split('_')[0]}")
    op.execute("DROP FUNCTION cotrail_step_changed()")
    op.execute("DROP FUNCTION cotrail_row_changed()")
    op.drop_index("questions_run_id_changed_in_id_idx", table_name="questions")
    op.drop_index("steps_run_id_ended_in_id_idx", table_name="steps")
    op.create_index("steps_run_id_idx", "steps", ["run_id"])
    op.drop_column("questions", "changed_in")
    op.drop_column("steps", "ended_in")
    op.drop_index("runs_project_created_at_id_idx", table_name="runs")
    for table in ("runs", "experiments"):
        op.drop_column(table, "project")
    op.drop_table("projects")
