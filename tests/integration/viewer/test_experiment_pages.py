"""Experiments in the viewer: how far each is, and its tables, each value with its runs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient
from msgspec.structs import replace
from sqlalchemy import Engine, select

from benchmarks.contenders.cotrail import submission
from cotrail.configuration.settings import settings
from cotrail.models.commands.control import cancel_questions
from cotrail.models.commands.submission import open_experiment, submit
from cotrail.models.schema.tables import questions
from cotrail.services.results.experiment_reports import read_report
from cotrail.systems.registry import find_system
from tests.integration.asked_service import service
from tests.integration.conftest import Cotrail
from tests.integration.ended import end_run
from tests.integration.test_searchain_report import ASKED, CELLS, EXPERIMENT, WRITTEN
from tests.integration.viewer.read_pages import Element, page_at


@pytest.fixture
def client(tmp_path: Path, cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    with service() as made:
        yield made


def begin(engine: Engine, name: str = "small") -> None:
    open_experiment(engine, name, {"experiment": {**EXPERIMENT, "name": name}, "models": {}})


def end(engine: Engine, cell: str, experiment: str = "small") -> str:
    run = cell.replace("/", "-")
    where: dict[str, Any] = {"run_id": run, "experiment": experiment, "cell": cell}
    return end_run(engine, ASKED, [WRITTEN, WRITTEN], answer="Ada built it.", system="searchain", **where)


def names(element: Element) -> str:
    """What it says, with names that may be broken behind their slashes in one piece."""
    return element.text.replace("/ ", "/")


def test_values_lead_to_their_runs_and_all_is_there_that_the_report_has(
    client: "TestClient[Any]", engine: Engine, cotrail: Cotrail, tmp_path: Path
) -> None:
    begin(engine)
    runs = [end(engine, cell) for cell in CELLS]
    page = page_at(client, "/experiments/small")
    links = {str(each.attributes["href"]) for each in page.one("main").all("a")}
    assert {f"/runs/{run}" for run in runs} <= links
    written = cotrail("experiment", "report", "small", "--output", tmp_path, "--no-runs")
    assert written.exit_code == 0, written.output
    said = cotrail("experiment", "report", "small")
    with engine.connect() as connection:
        summary = read_report(connection, "small").summary
    assert summary in page.text
    assert said.stdout.startswith(f"{summary}\n")
    assert json.loads(cotrail("experiment", "report", "small", "--json").stdout)["summary"] == summary
    report = (tmp_path / "report.html").read_text()
    for heading in page.one("main").all("h2"):
        assert f">{heading.text}</h2>" in report
    assert {each.attributes["value"] for each in page.all("input", type="checkbox")} == {*runs}
    assert page.one("form", id="progress").attributes["action"] == "/compare"


def test_progress_is_that_of_the_runs(client: "TestClient[Any]", engine: Engine) -> None:
    begin(engine)
    assert page_at(client, "/experiments").one("tbody").text == "small not begun 0 0 of 0"
    done = end(engine, CELLS[0])
    given = replace(submission(), id="open", experiment="small", cell=CELLS[1])
    submit(engine, given, ASKED, find_system)
    assert page_at(client, "/experiments").one("tbody").text == "small running 2 2 of 4"
    page = page_at(client, "/experiments/small")
    assert page.one("body").attributes["data-events"] == "/v1/runs/open/events"
    rows = [names(row) for row in page.one("form", id="progress").one("tbody").all("tr")]
    assert rows == [f"{CELLS[0]} 2 of 2", f"{CELLS[1]} 0 of 2"]
    assert [each.attributes["value"] for each in page.all("progress")] == ["2", "0"]
    assert done in str(page.one("form", id="progress").all("a")[0].attributes["href"])


def test_a_run_that_its_budget_ended_is_said_to_be_and_nothing_goes_on(
    client: "TestClient[Any]", engine: Engine
) -> None:
    begin(engine)
    end(engine, CELLS[0])
    submit(engine, replace(submission(), id="cut", experiment="small", cell=CELLS[1]), ASKED, find_system)
    with engine.begin() as connection:
        ids = connection.execute(select(questions.c.id).where(questions.c.run_id == "cut")).scalars().all()
        assert cancel_questions(connection, ids, "limit: run tokens") == 2
    assert page_at(client, "/experiments").one("tbody").text == "small ended early 2 2 of 4 2 never asked"
    page = page_at(client, "/experiments/small")
    assert not page.one("body").attributes.get("data-events")
    assert "This goes on" not in page.text
    form = page.one("form", id="progress")
    assert "2 of 4 questions in 2 runs; 2 more were never asked, and count nowhere." in form.text
    rows = [names(row) for row in form.one("tbody").all("tr")]
    assert rows == [f"{CELLS[0]} 2 of 2", f"{CELLS[1]} 0 of 2 2 never asked"]


def test_the_list_has_pages(client: "TestClient[Any]", engine: Engine) -> None:
    for number in range(21):
        begin(engine, f"small{number}")
    first = page_at(client, "/experiments")
    rest = page_at(client, str(first.one("a", rel="next").attributes["href"]))
    listed = [row.one("a").text for page in (first, rest) for row in page.one("tbody").all("tr")]
    assert listed == [f"small{number}" for number in reversed(range(21))]
    assert not rest.all("a", rel="next")
    opened = page_at(client, str(rest.one("tbody").one("a").attributes["href"]))
    assert opened.one("h1").text == "small0"
    page_at(client, "/experiments/nothing", 404)
