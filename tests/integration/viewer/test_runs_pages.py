"""The list of runs and the page of a run: filtered, sorted and steered by their addresses and forms."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from litestar.testing import TestClient
from sqlalchemy import Engine

from cotrail.configuration.settings import settings
from cotrail.models.commands.retrying import retry
from cotrail.models.queries.question_summaries import SummaryCounts
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.results.summarizing import Outcome, QuestionSummaries
from cotrail.services.runs.labels import label
from cotrail.systems.registry import find_system
from cotrail.viewer.pages.run import came_out
from tests.integration.asked_service import service
from tests.integration.compared import RIGHT, WRONG, answered
from tests.integration.conftest import Cotrail
from tests.integration.judged import judge, verdicts
from tests.integration.odd.driving import FOUND, asked, begin, carry_out, ended, failing, finding, writes
from tests.integration.test_causes import RUN, SCRIPTS, towns
from tests.integration.viewer.read_pages import BROWSER, Element, page_at

__all__ = ["towns"]

HOSTILE = "a<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{7*7}}"


@pytest.fixture
def client(towns: Engine, cotrail: Cotrail) -> Iterator["TestClient[Any]"]:
    """The service on a store with a closed run of questions with every cause of error."""
    settings.cache_clear()
    with service() as made:
        yield made


def rows(page: Element) -> list[str]:
    """The texts of the questions that are listed, as far as they tell them apart."""
    body = page.one(id="questions").one("tbody")
    links = [row.all("a") for row in body.all("tr")]
    return [str(each[0].attributes["href"]).rpartition("/")[2] for each in links if each]


def chip(page: Element, title: str) -> Element:
    [found] = [each for each in page.all("a", class_="chip") if each.text.startswith(title)]
    return found


def follow(client: "TestClient[Any]", link: Element) -> Element:
    return page_at(client, str(link.attributes["href"]).partition("#")[0])


def send(client: "TestClient[Any]", page: Element, action: str, **fields: str) -> Element:
    """Sends a form of the page, and shows where the browser goes then."""
    form = page.one("form", method="post", action=f"/runs/{RUN}/{action}")
    own = {str(each.attributes["name"]): each.attributes.get("value") or "" for each in form.all("input")}
    answer = client.post(str(form.attributes["action"]), data=own | fields, headers=BROWSER, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    return page_at(client, answer.headers["location"])


def test_runs_are_listed_with_their_scores_and_found_by_links(client: "TestClient[Any]", towns: Engine) -> None:
    label(towns, RUN, name=HOSTILE.replace("'", ""), add=["mine"])
    page = page_at(client, "/")
    [row] = page.one("tbody").all("tr")
    assert HOSTILE.replace("'", "")[:60] in row.text
    assert "9 of 9" in row.text
    assert "answer EM" in row.text
    assert row.one("progress").attributes["value"] == "9"
    tagged = follow(client, row.one(class_="tags").one("a"))
    assert len(tagged.one("tbody").all("a", href=f"/runs/{RUN}")) == 1
    chosen = chip(tagged, "tag mine")
    assert chosen.attributes["aria-current"] == "true"
    assert parse_qs(urlsplit(str(chosen.attributes["href"])).query) == {}
    running = follow(client, chip(page, "running"))
    assert "No runs by these filters" in running.one("tbody").text
    assert len(follow(client, chip(running, "running")).one("tbody").all("progress")) == 1


def test_runs_are_chosen_from_the_list_to_be_compared(client: "TestClient[Any]", towns: Engine) -> None:
    answered(towns, "alpha", [RIGHT, WRONG])
    answered(towns, "bravo", [RIGHT, RIGHT])
    judge(towns, verdicts({}), name="judging", of=("alpha",), keys=("q0",))
    form = page_at(client, "/").one("form", action="/compare")
    boxes = {str(each.attributes["value"]) for each in form.all("input", type="checkbox", name="run")}
    assert boxes == {RUN, "alpha", "bravo"}
    assert form.one("button").text == "Compare"
    page_at(client, "/compare?run=alpha&run=bravo")
    scored = {row.all("a")[0].text: row.all("span", class_="score") for row in form.one("tbody").all("tr")}
    assert [each.text.split(" ", 3)[:3] for each in scored["alpha"]] == [["50.0", "%", "answer"]]


def test_a_list_with_a_run_under_way_is_read_again(client: "TestClient[Any]", towns: Engine) -> None:
    assert "data-every" not in page_at(client, "/").one("body").attributes
    retry(towns, RUN, find_system, failed=True, blocked=False)
    assert page_at(client, "/").one("body").attributes["data-every"] == "5"


def test_a_run_shows_its_scores_its_causes_and_its_questions(client: "TestClient[Any]") -> None:
    page = page_at(client, f"/runs/{RUN}")
    tiles = [each.text for each in page.all("div", class_="tile")]
    assert any(each.startswith("11.1 % Answer EM 95 %:") for each in tiles)
    assert rows(page) == list(SCRIPTS)
    assert "Share of the 8 wrong answers by cause" in page.one(id="figures").one("figure", class_="bars").text
    figure = page.one(id="came-out")
    assert figure.one("figcaption").text == "How 9 questions came out"
    for drawn in figure.all("svg", role="img"):
        assert drawn.attributes["aria-label"] == "1 right, 1 partly right, 6 wrong, 1 failed"
        assert [each.text for each in drawn.all("text", class_="value")] == ["1", "1", "6", "1"]
        right, partly, wrong, *_ = (float(str(each.attributes["width"])) for each in drawn.all("rect"))
        assert right == partly == pytest.approx(wrong / 6, abs=0.1)
    assert "data-events" not in page.one("body").attributes
    levels = [int(each.name[1]) for each in page.all() if each.name in ("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))


def test_the_chart_of_outcomes_suits_runs_that_have_none_or_one(client: "TestClient[Any]", towns: Engine) -> None:
    ended(towns, "failed", asked("q", "r"), failing)
    ended(towns, "unscored", asked("q", answers=()), finding(FOUND, writes()))
    begin(towns, "empty", [])
    begin(towns, "open", asked("q", "r"))
    begin(towns, "under-way", asked("q", "r", "s"))
    carry_out(towns, "under-way", {"q": finding(FOUND, writes())})
    for run in ("empty", "open"):
        assert not page_at(client, f"/runs/{run}").all(id="came-out")
    for run, words in (("failed", "2 failed"), ("unscored", "1 not scored"), ("under-way", "1 right, 2 not finished")):
        drawings = page_at(client, f"/runs/{run}").one(id="came-out").all("svg")
        assert {each.attributes["aria-label"] for each in drawings} == {words}


def test_the_chart_of_outcomes_has_room_for_many_questions_and_a_bar_for_one() -> None:
    figure = came_out(many({"right": 70_000, "wrong": 1}, unfinished=20_000, waiting=9_999))
    assert figure is not None
    assert figure.title == "How 100,000 questions came out"
    assert figure.words == "70,000 right, 1 wrong, 20,000 not finished, 9,999 not looked at yet"
    for drawing in (figure.broad, figure.tight):
        assert min(each.length for each in drawing.bars) >= 1
        assert max(each.high for each in drawing.bars) + 70 <= drawing.width
        assert drawing.bars[-1].y < drawing.height


def many(outcomes: dict[Outcome, int], *, unfinished: int, waiting: int) -> QuestionSummaries:
    counts = SummaryCounts(questions=sum(outcomes.values()), outcomes=outcomes)
    statuses = dict.fromkeys(map(str, QuestionStatus), 0) | {"open": unfinished}
    return QuestionSummaries(run="r", questions=(), after=None, statuses=statuses, counts=counts, waiting=waiting)


def test_questions_are_chosen_and_sorted_by_links(client: "TestClient[Any]") -> None:
    page = page_at(client, f"/runs/{RUN}")
    assert chip(page, "partly right").text == "partly right 1"
    assert rows(follow(client, chip(page, "partly right"))) == ["form"]
    missing = follow(client, chip(page, "gold missing"))
    assert rows(missing) == ["missing", "failed"]
    assert rows(follow(client, chip(missing, "failed"))) == ["failed"]
    assert rows(follow(client, chip(missing, "gold missing"))) == list(SCRIPTS)
    assert rows(follow(client, chip(page, "reader wrong"))) == ["reader"]
    [head] = [each for each in page.all("th") if each.text == "Steps"]
    longest = follow(client, head.one("a"))
    [head] = [each for each in longest.all("th") if each.text == "Steps ↓"]
    assert head.attributes["aria-sort"] == "descending"
    assert rows(follow(client, head.one("a"))) != rows(longest)
    found = page_at(client, f"/runs/{RUN}?text=%28hidden%29&show=wrong")
    assert rows(found) == ["hidden"]
    search = found.one("form", action=f"/runs/{RUN}#questions")
    assert {each.attributes["name"]: each.attributes["value"] for each in search.all("input")} == {
        "show": "wrong",
        "text": "(hidden)",
    }
    nothing = page_at(client, f"/runs/{RUN}?text=%3Cscript%3E")
    assert rows(nothing) == []
    assert nothing.one("form", action=f"/runs/{RUN}#questions").one("input").attributes["value"] == "<script>"


def test_pages_of_questions_follow_one_another(client: "TestClient[Any]") -> None:
    first = client.get(f"/v1/runs/{RUN}/summaries", params={"limit": 4, "order": "-steps"}).json()
    page = page_at(client, f"/runs/{RUN}?sort=-steps&after={first['after']}")
    listed = [each["question_id"] for each in first["questions"]] + rows(page)
    assert sorted(listed) == sorted(SCRIPTS)
    assert [each for each in page.all("a") if each.text == "First page"]


def test_a_run_is_steered_by_forms(client: "TestClient[Any]") -> None:
    page = page_at(client, f"/runs/{RUN}")
    assert not page.all("a", href=f"/runs/{RUN}/cancel")
    page = send(client, page, "retry")
    assert "running" in page.one(id="standing").text
    assert str(page.one("body").attributes["data-events"]).startswith(f"/v1/runs/{RUN}/events?after=")
    page = send(client, page, "pause")
    assert "paused" in page.one(id="standing").text
    page = send(client, page, "priority", priority="7")
    assert "priority 7" in page.one(id="standing").text
    page = send(client, page, "resume")
    asked = page_at(client, f"/runs/{RUN}/cancel")
    page = send(client, asked, "cancel")
    assert "cancelled" in page.one(id="standing").text
    assert chip(page, "cancelled").text == "cancelled 1"


def test_a_run_is_labelled_and_forked(client: "TestClient[Any]") -> None:
    page = send(client, page_at(client, f"/runs/{RUN}"), "labels", name="mine", tags="a, b ,a,")
    assert page.one("h1").text == "mine"
    assert [each.text for each in page.one(id="standing").one(class_="tags").all("a")] == ["a", "b"]
    page = send(client, page, "labels", name="", tags="b")
    assert page.one("h1").text == RUN
    fork = page.one("form", method="post", action=f"/runs/{RUN}/fork")
    assert fork.one("textarea").attributes["name"] == "settings"
    answer = client.post(f"/runs/{RUN}/fork", data={"settings": "max_sentences"}, headers=BROWSER)
    assert answer.status_code == 422
    assert "sets nothing" in answer.text


def test_what_stands_behind_a_run_has_pages_of_its_own(client: "TestClient[Any]") -> None:
    assert "Plan" in page_at(client, f"/runs/{RUN}/plan").one("h2").text
    costs = page_at(client, f"/runs/{RUN}/costs")
    assert {each.text for each in costs.all("th", scope="row")} >= {"made", "retrieve", "reason"}
    assert "attachment" not in client.get(f"/v1/runs/{RUN}/report").headers
    page_at(client, "/runs/nothing", 404)
