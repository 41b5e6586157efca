"""Trees of reasoning as rows: the views, and the queries that the page on the store shows."""

import re
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, insert, text

from cotrail.core.questions import Question
from cotrail.models.schema.tables import paragraphs
from tests.integration.ended import end_run
from tests.unit.made_trees import mark, tree
from tests.unit.test_rethinking_tables import weighing

PAGE = (Path(__file__).parents[2] / "docs" / "store.md").read_text("utf-8")
*_, WAY, DOCUMENTS, _ = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)

ASKED = [Question(id=f"q{number}", text="Who built it?", answers=("Ada",)) for number in range(3)]
TREES = (
    tree("mc- df", path=(0, 1, 4), final="Ada [1].", marks=[mark("Ada", 0, 1), mark("built it", 4)]),
    tree("m", path=(0,), final="Eve.", marks=[mark("Eve")]),
    None,
)


def rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def test_every_node_is_a_row(engine: Engine) -> None:
    end_run(engine, ASKED, TREES)
    nodes = rows(engine, "SELECT * FROM reasoning_nodes WHERE question_key = 'q0' ORDER BY number")
    assert [(row[0], *row[2:]) for row in nodes[1:]] == [
        ("ended", "q0", 1, 1, 0, "Query 1?", "answer 1", False, "corrected", False, "extracted 1", 1.0, "d1"),
        ("ended", "q0", 2, 1, 1, "Query 2?", "answer 2", False, None, False, "", None, None),
        ("ended", "q0", 3, 2, 1, "Query 3?", "answer 3", False, None, True, "", None, None),
        ("ended", "q0", 4, 2, 3, "Query 4?", "", True, "completed", False, "extracted 4", 4.0, "d4"),
    ]
    assert rows(engine, "SELECT question_key, number, parent FROM reasoning_nodes WHERE parent IS NULL") == [
        *(("q0", 0, None), ("q1", 0, None))
    ]


def test_every_node_that_a_mark_names_is_a_row(engine: Engine) -> None:
    end_run(engine, ASKED, TREES)
    assert rows(engine, "SELECT question_key, position, text, number FROM reasoning_marks ORDER BY 1, 2, 4") == [
        *(("q0", 1, "Ada", 0), ("q0", 1, "Ada", 1), ("q0", 2, "built it", 4))
    ]


def test_details_of_other_systems_give_no_rows(engine: Engine) -> None:
    details = (
        weighing([("yes", 0.5)]),
        {"nodes": [{"number": "one", "query": "?"}, 3, None, {"number": 1}], "marks": [{"nodes": ["a"]}, "b"]},
        {"nodes": "all of them", "marks": {"nodes": 1}},
    )
    end_run(engine, ASKED, details)
    assert rows(engine, "SELECT * FROM reasoning_nodes") == []
    assert rows(engine, "SELECT * FROM reasoning_marks") == []


def test_the_pages_query_goes_from_the_question_to_each_corrected_answer(engine: Engine) -> None:
    end_run(engine, ASKED, TREES)
    assert rows(engine, WAY) == [
        ("ended", "q0", 1, 0, 1, "Query 0?", "answer 0"),
        ("ended", "q0", 1, 1, 1, "Query 1?", "answer 1"),
    ]


def test_the_pages_query_shows_the_document_behind_each_mark(engine: Engine) -> None:
    end_run(engine, ASKED, TREES)
    with engine.begin() as connection:
        connection.execute(insert(paragraphs).values(digest="d1", title="Bridges", text="Ada built it."))
        connection.execute(insert(paragraphs).values(digest="d4", title="Towers", text="Eve built it."))
    assert rows(engine, DOCUMENTS) == [
        ("ended", "q0", "Ada", "Query 1?", "Bridges"),
        ("ended", "q0", "built it", "Query 4?", "Towers"),
    ]
