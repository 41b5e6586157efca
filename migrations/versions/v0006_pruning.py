"""Runs can be pruned, with the paragraphs that nothing else refers to; an index leaves out runs that have ended."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

FILL = """
    INSERT INTO made_paragraphs (question_id, digest)
    SELECT DISTINCT steps.question_id, referred.digest
    FROM steps, jsonb_array_elements_text(request -> 'paragraphs') AS referred (digest)
    WHERE kind NOT IN ('retrieve', 'lookup') AND NOT EXISTS (
        SELECT 1 FROM paragraph_sets
        WHERE paragraph_sets.question_id = steps.question_id AND paragraph_sets.digest = referred.digest
    )
"""


def upgrade() -> None:
    _set_states("active", "paused", "cancelled", "pruned")
    op.create_index("runs_unsealed_idx", "runs", ["created_at", "id"], postgresql_where=sa.text("digest IS NULL"))
    op.create_index("paragraph_sets_digest_idx", "paragraph_sets", ["digest"])
    op.create_table(
        "made_paragraphs",
        sa.Column("question_id", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("question_id", "digest", name=op.f("made_paragraphs_pkey")),
        sa.ForeignKeyConstraint(
            ["question_id"], ["questions.id"], ondelete="CASCADE", name=op.f("made_paragraphs_question_id_fkey")
        ),
        sa.ForeignKeyConstraint(["digest"], ["paragraphs.digest"], name=op.f("made_paragraphs_digest_fkey")),
    )
    op.execute(FILL)
    op.create_index("made_paragraphs_digest_idx", "made_paragraphs", ["digest"])


def downgrade() -> None:
    op.drop_table("made_paragraphs")
    op.drop_index("paragraph_sets_digest_idx", table_name="paragraph_sets")
    op.drop_index("runs_unsealed_idx", table_name="runs")
    op.execute("DELETE FROM runs WHERE state = 'pruned'")
    _set_states("active", "paused", "cancelled")


def _set_states(*states: str) -> None:
    allowed = ", ".join(f"'{state}'" for state in states)
    op.drop_constraint(op.f("runs_state_check"), "runs", type_="check")
    op.create_check_constraint(op.f("runs_state_check"), "runs", f"state IN ({allowed})")
