"""Digests seal the record and triggers guard it; questions wait for admission; runs have priorities.

Rows that are in the store already are sealed as they are. Names and columns are written out as they were at this
revision.
"""

import json
from hashlib import sha256

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

CHUNK = 500

TIMES = {"created_at", "sent_at", "not_before", "lease_until", "started_at", "finished_at", "ended_at"}
EXPERIMENT = "id created_at plan"
RUN_OPENED = (
    "id created_at experiment_id cell reuse size origin forked_at system system_version settings dataset corpus "
    "corpus_revision knowledge model_name model embedder_name embedder entailer_name entailer profile temperature seed "
    "demonstrations provenance"
)
QUESTION_OPENED = "run_id position key text answers gold pinned evidence kind"
QUESTION = f"id {QUESTION_OPENED} opened status answer sentences collected weighing reason finished_at"
STEP = (
    "id run_id question_id sequence kind fingerprint shared_in adopted_from request state epoch created_at sent_at "
    "not_before worker lease_until started_at finished_at result failure prompt_tokens cached_prompt_tokens "
    "generated_tokens milliseconds previous"
)
ATTEMPT = "step_id epoch worker started_at ended_at outcome error"


def _array(table: str, columns: str, *further: str, before: str = "") -> str:
    parts = [
        f"to_char(timezone('UTC', {table}.{name}), 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
        if name in TIMES
        else f"{table}.{name}::text"
        for name in columns.split()
    ]
    return f"json_build_array({', '.join([*([before] if before else []), *parts, *further])})"


def _sha256(content: str) -> str:
    return f"encode(sha256(convert_to({content}, 'UTF8')), 'hex')"


HEAD = """
    (SELECT string_agg(d.digest, '' ORDER BY d.sequence) FROM steps d
     WHERE d.question_id = questions.id AND {before})
"""

GUARD = """
CREATE FUNCTION cotrail_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('cotrail.amending', true) = 'on' THEN
        RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
    END IF;
    RAISE EXCEPTION 'a row of % is final: it is part of the audit trail', TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation',
        HINT = 'cotrail retry opens failed questions again, cotrail prune removes whole runs';
END $$
"""

STEP_FINAL = "OLD.state IN ('finished', 'failed', 'cancelled')"
QUESTION_FINAL = "OLD.status IN ('finished', 'failed', 'cancelled')"
LATE = "NEW.outcome IN ('finished', 'failed') AND OLD.outcome NOT IN ('finished', 'failed', 'cancelled')"
CONFIGURED = ", ".join(f"{{row}}.{name}" for name in [*RUN_OPENED.split(), "opened"])
RECONFIGURED = f"ROW({CONFIGURED.format(row='OLD')}) IS DISTINCT FROM ROW({CONFIGURED.format(row='NEW')})"
REWORDED = ", ".join(f"{{row}}.{name}" for name in [*QUESTION_OPENED.split(), "opened"])
REASKED = f"ROW({REWORDED.format(row='OLD')}) IS DISTINCT FROM ROW({REWORDED.format(row='NEW')})"

CONTENTS = ("experiments", "sentences", "paragraph_sets", "paragraphs", "demonstrations")
GUARDS = {
    "steps": (f"UPDATE|{STEP_FINAL}", f"DELETE|{STEP_FINAL}"),
    "attempts": (f"UPDATE|OLD.outcome IS NOT NULL AND NOT ({LATE})", "DELETE|OLD.outcome IS NOT NULL"),
    "questions": (f"UPDATE|{QUESTION_FINAL} OR {REASKED}", f"DELETE|{QUESTION_FINAL}"),
    "runs": (f"UPDATE|OLD.opened <> '' AND (OLD.digest IS NOT NULL OR {RECONFIGURED})", "DELETE|true"),
    **dict.fromkeys(CONTENTS, ("UPDATE|true", "DELETE|true")),
}


def upgrade() -> None:
    _add_columns()
    _seal_what_is_there()
    for table, column in (("runs", "opened"), ("questions", "opened"), ("steps", "previous")):
        op.alter_column(table, column, nullable=False)
    op.alter_column("runs", "size", nullable=False)
    op.execute(GUARD)
    for table, guards in GUARDS.items():
        for guard in guards:
            event, condition = guard.split("|")
            op.execute(
                f"CREATE TRIGGER {table}_guard_{event.lower()} BEFORE {event} ON {table} FOR EACH ROW "
                f"WHEN ({condition}) EXECUTE FUNCTION cotrail_guard()"
            )


def _add_columns() -> None:
    op.add_column("runs", sa.Column("priority", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("size", sa.BigInteger(), nullable=True))
    for table, names in {
        "runs": ("origin", "forked_at", "opened", "digest"),
        "questions": ("opened", "digest"),
        "steps": ("previous", "digest"),
    }.items():
        for name in names:
            op.add_column(table, sa.Column(name, sa.String(), nullable=True))
    op.drop_constraint(op.f("steps_adopted_from_fkey"), "steps", type_="foreignkey")
    op.drop_constraint(op.f("steps_state_check"), "steps", type_="check")
    op.create_check_constraint(
        op.f("steps_state_check"),
        "steps",
        "state IN ('waiting', 'ready', 'running', 'finished', 'failed', 'cancelled')",
    )
    op.create_index("steps_waiting_idx", "steps", ["run_id", "id"], postgresql_where=sa.text("state = 'waiting'"))


def _seal_what_is_there() -> None:
    _digest_hits()
    op.execute("UPDATE attempts SET error = NULL WHERE error = 'null'")
    op.execute("UPDATE runs SET size = (SELECT count(*) FROM questions WHERE run_id = runs.id)")
    plan = f"(SELECT {_array('experiments', EXPERIMENT)}::text FROM experiments WHERE id = runs.experiment_id)"
    op.execute(f"UPDATE runs SET opened = {_sha256(_array('runs', RUN_OPENED, before=plan) + '::text')}")
    opened = _sha256(_array("questions", QUESTION_OPENED, before="runs.opened") + "::text")
    op.execute(f"UPDATE questions SET opened = {opened} FROM runs WHERE runs.id = run_id")
    _cancel_steps()
    op.execute(
        "UPDATE steps SET state = 'waiting' FROM questions WHERE questions.id = question_id AND state = 'ready' "
        "AND epoch = 0 AND sent_at IS NULL AND not_before IS NULL AND status = 'open' AND NOT EXISTS "
        "(SELECT 1 FROM steps began WHERE began.question_id = questions.id "
        "AND (began.epoch > 0 OR began.sent_at IS NOT NULL))"
    )
    _chain_steps()
    head = _sha256("questions.opened || coalesce(" + HEAD.format(before="true") + ", '')")
    op.execute(
        f"UPDATE questions SET digest = {_sha256(_array('questions', QUESTION, head) + '::text')} "
        "WHERE status IN ('finished', 'failed', 'cancelled')"
    )


def _digest_hits() -> None:
    """Add to the results of searches the digest of what they found."""
    connection = op.get_bind()
    hits = sa.text(
        "SELECT step_id, rank, digest, paragraph_id, score FROM paragraph_sets WHERE step_id = ANY(:ids) "
        "ORDER BY step_id, rank"
    )
    setting = sa.text(
        "UPDATE steps SET result = result || jsonb_build_object('digest', cast(:digest AS text)) WHERE id = :id"
    )
    searched = sa.text(
        "SELECT id FROM steps WHERE kind IN ('retrieve', 'lookup') AND state = 'finished' AND id > :after "
        "ORDER BY id LIMIT :chunk"
    )
    after = 0
    while ids := connection.execute(searched, {"after": after, "chunk": CHUNK}).scalars().all():
        found: dict[int, list[list[object]]] = {step_id: [] for step_id in ids}
        for step_id, *hit in connection.execute(hits, {"ids": ids}):
            found[step_id].append(list(hit))
        digests = {
            step_id: sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()
            for step_id, rows in found.items()
        }
        connection.execute(setting, [{"id": step_id, "digest": digest} for step_id, digest in digests.items()])
        after = ids[-1]


def _cancel_steps() -> None:
    """Cancel the steps that cancelled questions left open."""
    left = "questions.id = question_id AND questions.status = 'cancelled' AND state IN ('ready', 'running')"
    op.execute(
        "UPDATE attempts SET outcome = 'cancelled', ended_at = now() FROM steps, questions "
        f"WHERE steps.id = step_id AND attempts.epoch = steps.epoch AND outcome IS NULL AND {left}"
    )
    op.execute(
        f"UPDATE steps SET state = 'cancelled', finished_at = now(), lease_until = NULL FROM questions WHERE {left}"
    )


def _chain_steps() -> None:
    """Seal steps, one sequence number after another: a step's digest covers those of the steps before it."""
    connection = op.get_bind()
    earlier = (
        f"(SELECT json_agg({_array('attempts', ATTEMPT)} ORDER BY attempts.epoch)::text FROM attempts "
        "WHERE step_id = steps.id AND NOT (attempts.epoch = steps.epoch AND outcome = steps.state))"
    )
    digest = _sha256(_array("steps", STEP, earlier) + "::text")
    # Steps that were yielded together were recorded at one time, and no others of their question were.
    head = HEAD.format(before="d.created_at < steps.created_at")
    before = _sha256(f"questions.opened || coalesce({head}, '')")
    last = connection.execute(sa.text("SELECT coalesce(max(sequence), -1) FROM steps")).scalar_one()
    for sequence in range(last + 1):
        op.execute(
            f"UPDATE steps SET previous = {before} FROM questions "
            f"WHERE questions.id = question_id AND sequence = {sequence}"
        )
        op.execute(
            f"UPDATE steps SET digest = {digest} "
            f"WHERE sequence = {sequence} AND state IN ('finished', 'failed', 'cancelled')"
        )


def downgrade() -> None:
    for table, guards in GUARDS.items():
        for guard in guards:
            op.execute(f"DROP TRIGGER {table}_guard_{guard.split('|')[0].lower()} ON {table}")
    op.execute("DROP FUNCTION cotrail_guard()")
    op.drop_index("steps_waiting_idx", table_name="steps")
    op.execute("UPDATE steps SET state = 'ready' WHERE state IN ('waiting', 'cancelled')")
    op.execute("UPDATE attempts SET outcome = 'released' WHERE outcome IN ('cancelled', 'unavailable')")
    op.drop_constraint(op.f("steps_state_check"), "steps", type_="check")
    op.create_check_constraint(
        op.f("steps_state_check"), "steps", "state IN ('ready', 'running', 'finished', 'failed')"
    )
    op.execute("UPDATE steps SET adopted_from = NULL WHERE adopted_from NOT IN (SELECT id FROM steps)")
    op.create_foreign_key(
        op.f("steps_adopted_from_fkey"), "steps", "steps", ["adopted_from"], ["id"], ondelete="SET NULL"
    )
    for table, names in {
        "steps": ("digest", "previous"),
        "questions": ("digest", "opened"),
        "runs": ("digest", "opened", "forked_at", "origin", "size", "priority"),
    }.items():
        for name in names:
            op.drop_column(table, name)
