"""What judges say of a run, in the viewer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient
from sqlalchemy import Engine

from cotrail.configuration.settings import settings
from tests.integration.asked_service import service
from tests.integration.conftest import Cotrail
from tests.integration.judged import ANSWERED, RUN, answer, judge, verdict, verdicts
from tests.integration.viewer.read_pages import Element, page_at

HOSTILE = "<script>alert(1)</script>"
STRICT = {key: verdict("correct" if key == "q0" else "incorrect", 80) for key in ANSWERED}
KIND = {key: verdict("incorrect" if key == "q4" else "correct", 90) for key in ANSWERED}


@pytest.fixture
def client(tmp_path: Path, cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    with service() as made:
        yield made


def questions(page: Element) -> list[str]:
    return [each.one("h3").text for each in page.all("section", class_="q")]


def test_each_question_has_what_each_judge_says(client: "TestClient[Any]", engine: Engine) -> None:
    answer(engine)
    assert "No judge was asked" in page_at(client, f"/runs/{RUN}/verdicts").one("main").text
    judge(engine, verdicts(STRICT), name="strict")
    judge(engine, verdicts(KIND), name="kind", model=HOSTILE)
    page = page_at(client, f"/runs/{RUN}/verdicts")
    assert questions(page) == [f"Where is {key}?" for key in ANSWERED]
    first, *_ = page.all("section", class_="q")
    assert first.one("a").attributes["href"] == f"/runs/{RUN}/questions/q0"
    assert [each.text for each in first.all("li")] == [
        "correct/m correct (80 % sure) It is correct.",
        f"correct/{HOSTILE} correct (90 % sure) It is correct.",
    ]
    rows = [row.text for row in page.one("div", aria_label="What judges say").one("tbody").all("tr")]
    assert [row.split(" finished ")[0] for row in rows] == ["correct/m", f"correct/{HOSTILE}"]
    assert "Krippendorff's alpha" in page.one("main").text
    judges = {str(each.attributes["href"]) for each in page.one("main").all("a")}
    assert {"/runs/strict", "/runs/kind"} <= judges


def test_questions_are_chosen_on_which_judges_disagree(client: "TestClient[Any]", engine: Engine) -> None:
    answer(engine)
    judge(engine, verdicts(STRICT), name="strict")
    judge(engine, verdicts(KIND), name="kind", model="n")
    page = page_at(client, f"/runs/{RUN}/verdicts?which=split")
    assert questions(page) == ["Where is q1?", "Where is q2?", "Where is q3?"]
    assert [each.text for each in page.one("nav", aria_label="Which questions").all("a")] == [
        "Judged (5)",
        "Judges disagree (3)",
        "All (6)",
    ]
    assert "no answer" in page_at(client, f"/runs/{RUN}/verdicts?which=all").all("section", class_="q")[-1].text
    page_at(client, "/runs/strict/verdicts", 422)
