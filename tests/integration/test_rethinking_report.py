"""`cotrail rethinking` on runs whose answers and chains are put into the store by hand."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, update
from typer.testing import CliRunner, Result

from benchmarks.contenders.cotrail import submission
from cotrail.cli.main import app
from cotrail.configuration.settings import settings
from cotrail.core.questions import Question
from cotrail.errors import InputError
from cotrail.faithfulness.weighing import Weighing
from cotrail.models.commands.submission import submit
from cotrail.models.schema.seals import amending
from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.tables import questions, runs
from cotrail.systems.registry import find_system
from tests.integration.served_here import serving
from tests.unit.test_rethinking_tables import weighing

Cotrail = Callable[..., Result]
Stored = Callable[..., str]


@pytest.fixture
def cotrail(database: str, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Cotrail:
    """The command line in this process, on the store of the tests."""
    monkeypatch.setenv("COTRAIL_DATABASE_URL", database.replace("postgresql+psycopg://", "postgresql://", 1))
    settings.cache_clear()
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def stored(engine: Engine) -> Stored:
    """Puts a run into the store whose questions are answered so; None: not answered yet."""

    def stored(
        system: str,
        answers: Sequence[str | None],
        *,
        dataset: str = "strategyqa",
        weighings: Sequence[Weighing] = (),
        published: tuple[str, ...] = ("yes",),
        **told: Any,
    ) -> str:
        asked = [Question(id=f"q{n}", text=f"Is {n} a number?", answers=published) for n in range(len(answers))]
        run = replace(submission(), id=f"{system}-{dataset}", dataset=dataset)
        submit(engine, run, asked, find_system)
        given = [*weighings, *([None] * (len(answers) - len(weighings)))]
        with engine.begin() as connection:
            amending(connection)
            connection.execute(update(runs).where(runs.c.id == run.id).values(system=system, settings=told))
            for number, (answer, each) in enumerate(zip(answers, given, strict=True)):
                if answer is not None:
                    ended = {"status": QuestionStatus.FINISHED, "answer": answer, "weighing": msgspec.to_builtins(each)}
                    of_run = questions.c.run_id == run.id, questions.c.key == f"q{number}"
                    connection.execute(update(questions).where(*of_run).values(sentences=[], collected=[], **ended))
        return run.id

    return stored


def test_stored_runs_stand_beside_the_published_figures(stored: Stored, cotrail: Cotrail, tmp_path: Path) -> None:
    chains = weighing([("no", 0.1), ("yes", 0.9), ("no", 0.2)])
    ours = stored("rethinking", ["yes", "yes", None], weighings=[chains, chains], chains=3)
    theirs = stored("zero-shot", ["no", "", "yes"])
    said = cotrail("rethinking", ours, theirs, "--json", "--html", tmp_path / "page.html")
    assert said.exit_code == 0, said.output
    tables = {table["name"]: table["rows"] for table in json.loads(said.stdout)["tables"]}
    assert set(tables) == {"runs", "methods", "retrieval", "chains", "contrasts", "costs", "totals"}
    overview = {row["values"]["run"]: row["values"] for row in tables["runs"]}
    assert overview[ours]["accuracy"] == pytest.approx(2 / 3)
    assert overview[ours]["faithfulness"] == pytest.approx(0.9)
    assert (overview[theirs]["accuracy"], overview[theirs]["adjusted"]) == (pytest.approx(1 / 3), pytest.approx(0.5))
    assert [(row["values"]["voted"], row["values"]["faithful"]) for row in tables["chains"]] == [(0, 0), (0, 1), (0, 1)]
    assert "77.73" in (tmp_path / "page.html").read_text()
    printed = cotrail("rethinking", ours).stdout
    assert "66.67" in printed
    assert "arxiv.org/abs/2301.00303" in printed


def test_a_server_tells_and_writes_the_same(stored: Stored, cotrail: Cotrail, tmp_path: Path) -> None:
    chains = weighing([("no", 0.1), ("yes", 0.9), ("no", 0.2)])
    runs = stored("rethinking", ["yes", "yes"], weighings=[chains, chains], chains=3), stored("zero-shot", ["no", ""])
    page, figure = tmp_path / "page.html", tmp_path / "chains.svg"
    told = []
    with serving() as address:
        for door in ((), ("--server", address)):
            for form in (("--html", page, "--svg", figure), ("--json",)):
                said = cotrail(*door, "rethinking", *runs, *form)
                assert said.exit_code == 0, said.output
                told.append((said.stdout, page.read_bytes(), figure.read_bytes()))
            page.unlink()
            figure.unlink()
    assert told[:2] == told[2:]


def test_a_figure_that_there_is_not_and_a_page_that_has_no_place_are_refused(
    stored: Stored, cotrail: Cotrail, tmp_path: Path
) -> None:
    run = stored("zero-shot", ["no"])
    for option, said in (("--svg", "no run has several chains"), ("--html", "choose another path")):
        refused = cotrail("rethinking", run, option, tmp_path)
        assert isinstance(refused.exception, InputError)
        assert said in str(refused.exception)


def test_ones_own_questions_count_by_the_task_that_the_system_was_told(stored: Stored, cotrail: Cotrail) -> None:
    run = stored("self-consistency", ["true"], dataset="jsonl", published=("true",), task="tabular")
    (row, *_) = json.loads(cotrail("rethinking", run, "--json").stdout)["tables"][0]["rows"]
    assert (row["values"]["task"], row["values"]["accuracy"]) == ("Tabular", 1)


def test_runs_that_have_no_place_in_the_tables_are_refused(stored: Stored, cotrail: Cotrail) -> None:
    elsewhere = cotrail("rethinking", stored("ircot", ["yes"], dataset="hotpotqa"))
    assert isinstance(elsewhere.exception, InputError)
    assert "its settings name no task" in str(elsewhere.exception)
    unpublished = cotrail("rethinking", stored("zero-shot", ["yes"], published=()))
    assert isinstance(unpublished.exception, InputError)
    assert "come without answers" in str(unpublished.exception)
