"""Search-in-the-Chain from its submission to its trace: in the store, with scripted engines."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select

from cotrail.core.actions.registry import KINDS
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.tables import questions, steps
from cotrail.services.runs import submission
from cotrail.services.runs.requests import make_request
from cotrail.systems.registry import find_system
from cotrail.tasks.runtime import Runtime
from cotrail.tasks.step import carry_out, perform
from tests.conftest import Eventually
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import unsent

pytestmark = pytest.mark.usefixtures("verified")

QUESTION = "On which sea lies the mouth of the river of Brenn?"
RIVER, SEA = "Which river flows through Brenn?", "Which sea does the Vell flow into?"
BRENN, VELL = "The town of Brenn lies on the Vell.", "From its spring the Vell flows into the Amber Sea."
FIRST = f"[Query 1]: {RIVER}\n[Answer 1]: The Vell flows through Brenn.\n[Unsolved Query]: {SEA}"
LAST = (
    f"[Query 1]: {SEA}\n[Answer 1]: The Amber Sea.\n[Final Content]: On the Vell [1]. So the answer is Amber Sea [2]."
)
SCRIPT = {
    "name": "planner",
    "questions": {
        QUESTION: {"answer": "", "messages": [FIRST, LAST]},
        RIVER: {"answer": "the Vell"},
        SEA: {"answer": "the Amber Sea"},
    },
}
READER = {"answers": {RIVER: {BRENN: {"text": "Vell", "confidence": 3}}, SEA: {VELL: {"text": "Amber Sea"}}}}
MODELS = "".join(
    f'[{table}.{name}]\nengine = "scripted"\npath = "{name}.json"\n\n'
    for table, name in [("models", "planner"), ("extractors", "reader"), ("raters", "twins")]
)


@pytest.fixture
def home(cotrail: Cotrail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with scripted engines and a corpus of two towns, to submit runs from."""
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    (tmp_path / "models.toml").write_text(MODELS)
    for name, script in {"planner": SCRIPT, "reader": READER, "twins": {"scores": {SEA: {RIVER: 0.2}}}}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(script))
    corpus = [{"id": "1", "title": "Brenn", "text": BRENN}, {"id": "2", "title": "Vell", "text": VELL}]
    (tmp_path / "corpus.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in corpus))
    (tmp_path / "questions.jsonl").write_text(json.dumps({"id": "q", "question": QUESTION, "answers": ["Amber Sea"]}))
    (tmp_path / "prompt.txt").write_text("Plan queries for this question: {question}")
    assert cotrail("index", tmp_path / "corpus.jsonl", "--name", "towns").exit_code == 0
    return tmp_path


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"prompt": "prompt.txt"}, ["retrieve", "read"]),
        ({"rules": "released", "extractor": "reader", "duplicate_rater": "twins"}, ["retrieve", "extract"]),
    ],
)
def test_a_question_is_answered_in_two_rounds(
    changes: dict[str, Any],
    kinds: list[str],
    home: Path,
    here: Runtime,
    engine: Engine,
    sent: list[Dispatch],
    query: Query,
    eventually: Eventually,
    cotrail: Cotrail,
) -> None:
    asked = {
        "system": "searchain",
        "dataset": "jsonl",
        "questions": str(home / "questions.jsonl"),
        "corpus": "towns",
        "model": "planner",
        **changes,
        **({"prompt": str(home / "prompt.txt")} if "prompt" in changes else {}),
    }
    run = submission.submit(engine, submission.prepare(make_request(asked)))
    for kind in KINDS:
        sent += unsent(engine, kind)

    def ended() -> bool:
        while sent:
            perform(sent.pop(0), carry_out)
        return query(select(questions.c.status).where(questions.c.run_id == run)) != [{"status": "open"}]

    eventually(ended, "the question has ended")
    [row] = query(select(questions.c.status, questions.c.answer).where(questions.c.run_id == run))
    assert row == {"status": "finished", "answer": "On the Vell. So the answer is Amber Sea."}
    done = [
        each["kind"] for each in query(select(steps.c.kind).where(steps.c.run_id == run).order_by(steps.c.sequence))
    ]
    traced = ["reason"] if "prompt" in changes else []
    assert done == ["reason", *kinds, *kinds, "reason", *traced]
    with engine.connect() as connection:
        assert [each.divergence for each in replay_run(connection, run, find_system)] == [""]
    assert "didn't fit" not in cotrail("trace", run, "q").output
    told = cotrail("trace", run, "q", "--json")
    details = next(json.loads(line)["details"] for line in told.output.splitlines() if '"details"' in line)
    assert [node["source"] for node in details["nodes"]] == ["model", "completed", None]
    assert details["path"] == [0, 1]
