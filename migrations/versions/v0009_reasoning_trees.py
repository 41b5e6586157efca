"""Trees of reasoning, which answers keep as JSON, can be read as rows."""

from alembic import op

revision = "0009"
down_revision = "0008"

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


def upgrade() -> None:
    op.execute(NODES)
    op.execute(MARKS)


def downgrade() -> None:
    op.execute("DROP VIEW reasoning_marks")
    op.execute("DROP VIEW reasoning_nodes")
