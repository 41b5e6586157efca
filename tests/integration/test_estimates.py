"""Estimates before anything is spent: by the limits of systems, and by what earlier runs took."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, func, select

from benchmarks.contenders.cotrail import submission
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.outcomes import read_measured
from cotrail.models.schema.tables import runs
from cotrail.systems.registry import find_system
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import LEASE, STEPS, begin, close_runs, run_to_end

MODELS = """
[models.priced]
engine = "openai"
url = "http://127.0.0.1:9/v1"
model = "m"
context = 1000
price = { input = 1, output = 10, batch = 0.5 }

[models.unpriced]
engine = "openai"
url = "https://models.example/v1"
model = "m"
context = 1000
key_variable = "A_KEY"
"""
WORDS = 7
"""Words of the longest question."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    monkeypatch.setenv("A_KEY", "secret")
    (tmp_path / "models.toml").write_text(MODELS)
    asked = [{"id": f"q{n}", "question": "Who was it ?" + " really" * n, "answers": ["x"]} for n in range(4)]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, asked)))
    return tmp_path


def estimated(cotrail: Cotrail, home: Path, *arguments: object) -> Any:
    usual = ("--system", "no-retrieval", "--dataset", "jsonl", "--questions", home / "questions.jsonl")
    done = cotrail("submit", *usual, "--estimate", *arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_limits_are_priced_and_nothing_is_submitted(home: Path, cotrail: Cotrail, query: Query) -> None:
    most = json.loads(estimated(cotrail, home, "--model", "priced", "--json"))["most"]
    read = 4 * -(-WORDS * 3 // 2)
    assert (most["steps"], most["usage"]["calls"]) == (4, 4)
    assert (most["usage"]["input_tokens"], most["usage"]["output_tokens"]) == (read, 4 * 64)
    cost = Decimal(read + 4 * 64 * 10).scaleb(-6)
    assert (Decimal(most["dollars"]), Decimal(most["batch_dollars"])) == (cost, cost / 2)
    assert query(select(func.count()).select_from(runs)) == [{"count_1": 0}]


def test_the_page_says_where_prices_are_from(home: Path, cotrail: Cotrail) -> None:
    told = " ".join(estimated(cotrail, home, "--model", "priced").split())
    assert "no-retrieval on 4 questions of jsonl with priced" in told
    assert "Prices: models.toml. Nothing was submitted." in told
    assert "No earlier run of no-retrieval on jsonl has ended" in told
    unknown = " ".join(estimated(cotrail, home, "--model", "unpriced").split())
    assert "The price of unpriced isn't known" in unknown
    assert "$" not in unknown


def test_earlier_runs_are_measured_once_they_have_ended(engine: Engine) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    run = submission()
    of: dict[str, Any] = {"system": run.system, "version": run.system_version, "dataset": run.dataset}
    run_to_end(ledger, begin(engine, 3))
    with engine.connect() as connection:
        assert read_measured(connection, **of, model=run.model_name) is None
    close_runs(engine)
    with engine.connect() as connection:
        measured = read_measured(connection, **of, model=run.model_name)
        others = read_measured(connection, **of, model="another")
        assert read_measured(connection, **(of | {"dataset": "another"}), model=run.model_name) is None
    assert measured
    assert (measured.model, measured.runs, measured.questions) == (run.model_name, 1, 3)
    assert measured.steps == 3 * STEPS
    assert others
    assert (others.model, others.steps) == ("", measured.steps)


def test_questions_that_a_budget_ended_are_not_measured(engine: Engine) -> None:
    run = submission()
    run_to_end(
        Ledger(engine, "w", LEASE, find_system), begin(engine, 1, provenance={"budgets": {"question": {"steps": 2}}})
    )
    assert close_runs(engine)
    with engine.connect() as connection:
        measured = read_measured(
            connection, system=run.system, version=run.system_version, dataset=run.dataset, model=run.model_name
        )
    assert measured is None


def submitted(cotrail: Cotrail, home: Path, *arguments: object) -> Any:
    usual = ("--system", "no-retrieval", "--dataset", "jsonl", "--questions", home / "questions.jsonl")
    return cotrail("submit", *usual, *arguments)


def test_budgets_are_pinned_as_they_were_written(home: Path, cotrail: Cotrail, query: Query) -> None:
    limits = ("--question-budget", "tokens=20000", "--question-budget", "seconds=2.5", "--run-budget", "money=5")
    done = submitted(cotrail, home, "--model", "priced", *limits)
    assert done.exit_code == 0, done.output
    [row] = query(select(runs.c.provenance))
    assert row["provenance"]["budgets"] == {"question": {"tokens": 20000, "seconds": 2.5}, "run": {"money": 5}}
    assert row["provenance"]["prices"]["model"]["source"] == "models.toml"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--run-budget", "money=5", "--model", "unpriced"), "a budget of money needs the prices"),
        (("--run-budget", "tokens", "--model", "priced"), "--run-budget tokens is no limit: write LIMIT=NUMBER"),
        (("--run-budget", "tokens=many", "--model", "priced"), "is no limit: write LIMIT=NUMBER"),
        (("--question-budget", "words=5", "--model", "priced"), "words"),
        (("--question-budget", "tokens=0", "--model", "priced"), "`question_budget.tokens` must be a whole number"),
        (("--question-budget", "seconds=nan", "--model", "priced"), "question_budget"),
    ],
)
def test_a_budget_that_can_not_be_kept_is_refused(
    home: Path, cotrail: Cotrail, query: Query, arguments: tuple[str, ...], said: str
) -> None:
    done = submitted(cotrail, home, *arguments)
    assert done.exit_code
    assert said in str(done.exception), done.exception
    assert query(select(runs)) == []
