"""The triggers that guard what is recorded, and the views of it: of the record's format 1.0."""

from alembic import op

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
# Readers of events follow a run by these numbers: a row's is of the transaction in which it ended or changed.
STEP_CHANGED = """
CREATE FUNCTION cotrail_step_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.ended_in := CASE WHEN NEW.state IN ('finished', 'failed', 'cancelled') THEN pg_current_xact_id() END;
    RETURN NEW;
END $$
"""
ROW_CHANGED = """
CREATE FUNCTION cotrail_row_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_in := pg_current_xact_id();
    RETURN NEW;
END $$
"""

ENDED = "('finished', 'failed', 'cancelled')"
STEP_FINAL = f"OLD.state IN {ENDED}"
QUESTION_FINAL = f"OLD.status IN {ENDED}"
# An attempt whose step was taken from it may still end with a result, which then counts for nothing.
LATE = f"NEW.outcome IN ('finished', 'failed') AND OLD.outcome NOT IN {ENDED}"
RUN = (
    "id created_at experiment_id cell reuse size origin forked_at system system_version settings dataset corpus "
    "corpus_revision knowledge model_name model embedder_name embedder entailer_name entailer profile temperature seed "
    "demonstrations provenance opened"
)
"""Columns of a run that never change once it is sealed as it was submitted."""

QUESTION = "run_id position key text answers gold pinned evidence kind judged opened"
"""Columns of a question that never change."""


def _differ(names: str) -> str:
    """The condition that an update changes one of these columns."""
    old, new = (", ".join(f"{row}.{name}" for name in names.split()) for row in ("OLD", "NEW"))
    return f"ROW({old}) IS DISTINCT FROM ROW({new})"


CONTENTS = ("experiments", "sentences", "paragraph_sets", "paragraphs", "demonstrations")
GUARDS = {
    "steps": (f"{STEP_FINAL} OR OLD.edit IS DISTINCT FROM NEW.edit", STEP_FINAL),
    "attempts": (f"OLD.outcome IS NOT NULL AND NOT ({LATE})", "OLD.outcome IS NOT NULL"),
    "questions": (f"{QUESTION_FINAL} OR {_differ(QUESTION)}", QUESTION_FINAL),
    "runs": (f"OLD.opened <> '' AND (OLD.digest IS NOT NULL OR {_differ(RUN)})", "true"),
    **dict.fromkeys(CONTENTS, ("true", "true")),
}
"""By table, the rows that no update and no deletion may change."""

FOLLOWED = {
    "steps_ended_insert": f"BEFORE INSERT ON steps FOR EACH ROW WHEN (NEW.state IN {ENDED})",
    "steps_ended_update": (
        "BEFORE UPDATE OF state ON steps FOR EACH ROW "
        f"WHEN (NEW.state <> OLD.state AND (NEW.state IN {ENDED} OR OLD.state IN {ENDED}))"
    ),
    "questions_changed_insert": "BEFORE INSERT ON questions FOR EACH ROW",
    "questions_changed_update": (
        "BEFORE UPDATE OF status ON questions FOR EACH ROW WHEN (NEW.status IS DISTINCT FROM OLD.status)"
    ),
}
"""The triggers that number changes."""

# Details of other systems have no such nodes, or might have other ones under that name: these conditions hold before
# any value is cast.
NODES = """
    CREATE VIEW reasoning_nodes AS
    SELECT
        run_id,
        questions.id AS question_id,
        key AS question_key,
        (node->>'number')::integer AS number,
        (node->>'round')::integer AS round,
        (node->>'parent')::integer AS parent,
        node->>'query' AS query,
        node->>'answer' AS answer,
        (node->>'unsolved')::boolean AS unsolved,
        node->>'source' AS source,
        (node->>'duplicate')::boolean AS duplicate,
        node->>'extracted' AS extracted,
        (node->>'confidence')::double precision AS confidence,
        node->>'paragraph' AS paragraph
    FROM questions
    CROSS JOIN LATERAL jsonb_path_query(
        weighing,
        '$.nodes[*] ? (
            @.number.type() == "number" && @.round.type() == "number" && @.query.type() == "string"
            && (@.parent.type() == "number" || @.parent == null)
        )'
    ) AS node
"""
MARKS = """
    CREATE VIEW reasoning_marks AS
    SELECT
        run_id,
        questions.id AS question_id,
        key AS question_key,
        part.position::integer AS position,
        part.mark->>'text' AS text,
        node::integer AS number
    FROM questions
    CROSS JOIN LATERAL jsonb_array_elements(
        CASE jsonb_typeof(weighing->'marks') WHEN 'array' THEN weighing->'marks' END
    ) WITH ORDINALITY AS part(mark, position)
    CROSS JOIN LATERAL jsonb_path_query(part.mark, '$.nodes[*] ? (@.type() == "number")') AS node
"""
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
                    WHERE steps.run_id = runs.id AND status = 'open' AND steps.state IN ('ready', 'running', 'batched')
                )
            ) THEN CASE desired_state WHEN 'paused' THEN 'paused' ELSE 'running' END
            WHEN EXISTS (SELECT FROM questions WHERE run_id = runs.id AND status = 'blocked') THEN 'blocked'
            ELSE 'finished'
        END AS state
    FROM runs
"""


def guard() -> None:
    """Make functions, triggers and views."""
    for statement in (GUARD, STEP_CHANGED, ROW_CHANGED, NODES, MARKS, STATES):
        op.execute(statement)
    for table, (update, delete) in GUARDS.items():
        for event, condition in (("update", update), ("delete", delete)):
            op.execute(
                f"CREATE TRIGGER {table}_guard_{event} BEFORE {event} ON {table} FOR EACH ROW "
                f"WHEN ({condition}) EXECUTE FUNCTION cotrail_guard()"
            )
    for name, when in FOLLOWED.items():
        function = "cotrail_step_changed" if name.startswith("steps") else "cotrail_row_changed"
        op.execute(f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {function}()")


def unguard() -> None:
    """Take them away; triggers go with their functions."""
    for view in ("run_states", "reasoning_marks", "reasoning_nodes"):
        op.execute(f"DROP VIEW {view}")
    for function in ("cotrail_guard", "cotrail_step_changed", "cotrail_row_changed"):
        op.execute(f"DROP FUNCTION {function}() CASCADE")
