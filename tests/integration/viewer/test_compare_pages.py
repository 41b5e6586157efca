"""Comparisons in the viewer: the matrix, the questions behind it, two runs side by side on one of them."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from litestar.testing import TestClient
from msgspec.structs import replace
from sqlalchemy import Engine

from cotrail.configuration.settings import settings
from tests.cases import each_case
from tests.integration.asked_service import service
from tests.integration.compared import HALF, RIGHT, WRONG, answered, asked
from tests.integration.conftest import Cotrail
from tests.integration.judged import judge, verdicts
from tests.integration.viewer import turned
from tests.integration.viewer.read_pages import Element, page_at

HOSTILE = '<script>alert(1)</script>"><svg onload=alert(2)>{{7*7}}'

MOST_ELEMENTS = 3000

ALPHA = [RIGHT] * 3 + [HALF, WRONG, RIGHT]
BRAVO = [RIGHT, WRONG, HALF, WRONG, RIGHT, RIGHT]
"""The answers of two runs: both right on two, alpha alone on two, bravo alone on one, neither on one."""


@pytest.fixture
def client(tmp_path: Path, engine: Engine, cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    with service() as made:
        yield made


@pytest.fixture
def pair(engine: Engine) -> str:
    """Two runs, as a query names them."""
    return f"run={answered(engine, 'alpha', ALPHA)}&run={answered(engine, 'bravo', BRAVO)}"


def offered(page: Element) -> list[str]:
    return sorted(str(each.attributes["value"]) for each in page.all("input", type="checkbox"))


def numbers(page: Element) -> dict[str, tuple[int, str]]:
    """The cells of the matrix: how many questions, and where they are listed."""
    links = [each for cell in page.one("table", class_="matrix").all("td") for each in cell.all("a")]
    return {each.one("small").text: (int(each.one("b").text), str(each.attributes["href"])) for each in links}


def listed(page: Element) -> list[str]:
    return [link.text for link in page.one("table", class_="cards full").all("a")]


def marked(page: Element, row: int) -> list[str]:
    return [each.text for each in page.one("li", id=f"row-{row}").all("mark")]


def leading(page: Element, rel: str) -> str | None:
    found = page.one("main").all("a", rel=rel)
    return str(found[0].attributes["href"]) if found else None


def test_runs_are_chosen_in_a_form(client: "TestClient[Any]", pair: str) -> None:
    page = page_at(client, "/compare")
    boxes = page.all("input", type="checkbox")
    assert sorted(str(each.attributes["value"]) for each in boxes) == ["alpha", "bravo"]
    assert not [each for each in boxes if "checked" in each.attributes]
    alone = page_at(client, "/compare?run=alpha&run=alpha")
    assert "what to compare alpha with" in alone.one("main").text
    assert [
        each.attributes["value"] for each in alone.all("input", type="checkbox") if "checked" in each.attributes
    ] == ["alpha"]


def test_only_runs_that_can_be_compared_are_offered(client: "TestClient[Any]", engine: Engine, pair: str) -> None:
    others = [replace(each, id=f"other {each.id}") for each in asked(2)]
    answered(engine, "others", [RIGHT, WRONG], questions=others)
    judge(engine, verdicts({}), name="judging", of=("alpha",), keys=("q0", "q1"))
    assert offered(page_at(client, "/compare")) == ["alpha", "bravo", "others"]
    for address in ("/compare?run=alpha", f"/compare?{pair}"):
        assert offered(page_at(client, address)) == ["alpha", "bravo"]


def test_the_metrics_of_the_runs_are_chosen_from(client: "TestClient[Any]", pair: str) -> None:
    page = page_at(client, f"/compare?{pair}&metric=answer_f1")
    choices = {str(each.attributes["value"]): each for each in page.one("select", name="metric").all("option")}
    assert {"answer_em", "answer_f1"} <= set(choices)
    assert [name for name, each in choices.items() if "selected" in each.attributes] == ["answer_f1"]
    for name in choices:
        page_at(client, f"/compare?{pair}&metric={name}")


def test_questions_stand_before_tables(client: "TestClient[Any]", pair: str) -> None:
    main = page_at(client, f"/compare?{pair}").one("main")
    inside = main.one("details", id="more")
    assert len(inside.all("table", class_="cards full")) == len(main.all("table", class_="cards full"))
    order = [*main.all()]
    assert order.index(main.all("details", class_="question")[0]) < order.index(inside)


def test_differences_of_two_runs_are_one_table_and_of_three_one_for_each_metric(
    client: "TestClient[Any]", engine: Engine, pair: str
) -> None:
    def tables(address: str) -> dict[str, list[str]]:
        regions = page_at(client, address).all("div", role="region")
        return {
            str(each.attributes["aria-label"]): [row.all("td")[0].text for row in each.one("tbody").all("tr")]
            for each in regions
            if str(each.attributes["aria-label"]).startswith("Differences")
        }

    assert tables(f"/compare?{pair}")["Differences in points"][:2] == ["Answer EM", "Answer F1"]
    assert [*tables(f"/compare?{pair}&metric=answer_em")][:1] == ["Differences, Answer EM"]
    answered(engine, "charlie", [RIGHT, WRONG])
    assert [*tables(f"/compare?{pair}&run=charlie")][:2] == ["Differences, Answer EM", "Differences, Answer F1"]


def test_each_number_of_the_matrix_leads_to_so_many_questions(client: "TestClient[Any]", pair: str) -> None:
    found = numbers(page_at(client, f"/compare?{pair}"))
    assert {words: number for words, (number, _) in found.items()} == {
        "both": 2,
        "only A": 2,
        "only B": 1,
        "neither": 1,
    }
    questions = {words: listed(page_at(client, address)) for words, (_, address) in found.items()}
    assert {words: len(each) for words, each in questions.items()} == {words: found[words][0] for words in found}
    assert questions["only A"] == ["Who built number 1?", "Who built number 2?"]
    assert sorted(chain.from_iterable(questions.values())) == [f"Who built number {n}?" for n in range(6)]


def test_a_question_s_score_is_written_as_everywhere(client: "TestClient[Any]", pair: str, cotrail: Cotrail) -> None:
    def scores(query: str) -> set[str]:
        page = page_at(client, f"/compare/questions?{pair}&{query}")
        return {each.text for each in page.one("table", class_="cards full").all("small")}

    assert scores("outcome=first") == {"100.0 %", "0.0 %"}
    assert scores("outcome=differ&metric=paragraphs_collected") == set()
    assert scores("outcome=neither&metric=paragraphs_collected") == {"1.00"}
    on_page = [each.text for each in page_at(client, f"/compare?{pair}").one("main").all("dd")]
    assert any("100.0 %" in each for each in on_page)
    assert "alpha 100.0 %  " in cotrail("compare", "alpha", "bravo", "--all").stdout


def test_a_page_says_what_the_report_says(
    client: "TestClient[Any]", pair: str, cotrail: Cotrail, tmp_path: Path
) -> None:
    page = page_at(client, f"/compare?{pair}")
    assert cotrail("compare", "alpha", "bravo", "--html", tmp_path / "report.html").exit_code == 0
    report = (tmp_path / "report.html").read_text()
    assert report.count("<table") == len(page.all("table", class_="cards full")) > 4
    for heading in page.one("main").all("h2"):
        assert f">{heading.text}</h2>" in report
    assert page.one("h1").text in report
    rows = page.one("div", aria_label="Scores").all("tbody")[0].all("tr")
    assert [row.one("a").attributes["href"] for row in rows] == ["/runs/alpha", "/runs/bravo"]
    assert [each.attributes["viewbox"] for each in page.all("svg")]


def test_long_lists_have_pages(client: "TestClient[Any]", engine: Engine) -> None:
    answered(engine, "alpha", [RIGHT] * 70)
    answered(engine, "bravo", [WRONG] * 60 + [RIGHT] * 10)
    address: str | None = "/compare/questions?run=alpha&run=bravo"
    pages = []
    while address:
        page = page_at(client, address)
        pages.append(listed(page))
        address = leading(page, "next")
    assert [len(each) for each in pages] == [50, 10]
    assert [*chain.from_iterable(pages)] == [f"Who built number {n}?" for n in range(60)]


def test_the_words_are_marked_that_one_run_alone_has(client: "TestClient[Any]", pair: str) -> None:
    page = page_at(client, f"/compare/question?{pair}&question=q2")
    assert [each.text for each in page.one("div", id="answers").all("span", class_="letter")] == ["A", "B"]
    assert [each.text for each in page.one("div", id="answers").all("p", class_="sentence")] == [RIGHT, HALF]
    assert [each.text for each in page.one("div", id="answers").all("span", class_="mark right")] == ["✓ right"]
    assert [each.text for each in page.one("div", id="answers").all("span", class_="mark wrong")] == ["✗ wrong"]
    assert marked(page, 1) == ["Brenn"]
    parting = page.one("p", class_="parting").one("a")
    assert page.one("li", id=str(parting.attributes["href"]).partition("#")[2])
    # What both did alike is there once.
    assert page.one("li", id="row-0").one("span", class_="letter").text == "A = B"


def test_steps_are_aligned_by_what_they_are(client: "TestClient[Any]", engine: Engine) -> None:
    answered(engine, "alpha", ALPHA)
    answered(engine, "carol", BRAVO, system="no-retrieval")
    page = page_at(client, "/compare/question?run=carol&run=alpha&question=q1")
    first, second = page.one("li", id="row-0"), page.one("li", id="row-1")
    assert "only alpha has such a step" in first.text
    assert first.all("div", class_="side none")
    assert first.all("span", class_="only")[0].text == "only B finds it"
    assert not second.all("div", class_="side none")
    assert marked(page, 1) == [WRONG, RIGHT]


def test_one_goes_through_the_questions_on_which_they_differ(client: "TestClient[Any]", pair: str) -> None:
    address: str | None = f"/compare/question?{pair}&question=q0"
    seen = []
    while address := leading(page_at(client, address or ""), "next"):
        seen.append(address.rpartition("question=")[2])
    assert seen == ["q1", "q2", "q4"]
    last = page_at(client, f"/compare/question?{pair}&question=q4")
    assert str(leading(last, "prev")).endswith("question=q2")
    assert numbers(last)["only A"][0] == 2


def test_long_traces_have_pages_and_the_first_difference_is_led_to(client: "TestClient[Any]", pair: str) -> None:
    whole = client.get("/v1/comparisons/questions/q2?first=alpha&second=bravo").json()
    assert (whole["total"], len(whole["rows"]), whole["parting"]["step"]) == (2, 2, 1)
    part = client.get("/v1/comparisons/questions/q2?first=alpha&second=bravo&start=1&limit=1").json()
    assert part["rows"] == whole["rows"][1:]


def test_texts_of_people_and_models_are_only_text(client: "TestClient[Any]", engine: Engine) -> None:
    questions = [replace(each, id=f"{each.id}/{HOSTILE}", text=HOSTILE) for each in asked(2)]
    for run, answers in (("alpha", [HOSTILE, RIGHT]), ("bravo", [WRONG, RIGHT])):
        answered(engine, run, answers, questions=questions)
        assert client.patch(f"/v1/runs/{run}/labels", json={"name": f"{run} {HOSTILE}"}).status_code == 200
    names = f"run={quote(f'alpha {HOSTILE}')}&run={quote(f'bravo {HOSTILE}')}"
    key = quote(f"q0/{HOSTILE}", safe="")
    for address in ("/compare", f"/compare?{names}", f"/compare/question?{names}&question={key}"):
        page = page_at(client, address)
        assert f"alpha {HOSTILE}" in page.one("main").text
    assert page.one("h1").text == HOSTILE
    assert HOSTILE in page.one("div", id="answers").text
    assert not page_at(client, f"/compare/questions?{names}&outcome=both").all("svg")


def test_steps_are_shown_where_nothing_says_who_is_right(client: "TestClient[Any]", engine: Engine) -> None:
    questions = [replace(each, answers=()) for each in asked(1)]
    for run, answer in (("alpha", RIGHT), ("bravo", WRONG)):
        answered(engine, run, [answer], questions=questions)
    page = page_at(client, "/compare/question?run=alpha&run=bravo&question=q0")
    assert "no score in common" in page.one("main").text
    assert not page.all("table", class_="matrix")
    assert marked(page, 1) == [RIGHT, WRONG]


@each_case(
    ("address", "status"),
    [
        ("/compare?run=alpha&run=nothing", 404),
        ("/compare/question?run=alpha&run=bravo&question=nothing", 404),
        ("/compare/question?run=alpha&question=q0", 422),
        ("/compare/questions?run=alpha&run=bravo&outcome=all", 422),
        ("/compare/questions?run=alpha&run=bravo&metric=nothing", 404),
        ("/compare/questions?run=alpha&run=bravo&after=nothing", 404),
    ],
)
def test_what_is_not_there_is_said(client: "TestClient[Any]", pair: str, address: str, status: int) -> None:
    page_at(client, address, status)


def test_a_question_under_way_is_followed(client: "TestClient[Any]", engine: Engine) -> None:
    answered(engine, "alpha", ALPHA)
    answered(engine, "bravo", BRAVO, ending=3)
    ended = page_at(client, "/compare/question?run=alpha&run=bravo&question=q1")
    assert "data-events" not in ended.one("body").attributes
    page = page_at(client, "/compare/question?run=alpha&run=bravo&question=q4")
    assert page.one("body").attributes["data-events"] == "/v1/runs/bravo/questions/q4/events"
    assert "no answer" in page.one("div", id="answers").text
    assert "only alpha has such a step" in page.one("li", id="row-1").text
    assert "haven't ended in both runs" in page_at(client, "/compare/questions?run=alpha&run=bravo").one("main").text


def test_a_thousand_steps_are_paged(client: "TestClient[Any]", engine: Engine) -> None:
    for run, turns in (("one", 5), ("two", 6)):
        turned.lengthen(engine, turned.answer(engine, turns, run=run), 1000)
    address = "/compare/question?run=one&run=two&question=1"
    pages = [page_at(client, address), page_at(client, f"{address}&start=980")]
    for page, start in zip(pages, (0, 980), strict=True):
        assert len(page.all()) <= MOST_ELEMENTS
        rows = [each.attributes.get("id") for each in page.one("ol", id="rows").all("li")]
        assert [each for each in rows if each] == [f"row-{start + number}" for number in range(20)]
    later, earlier = (page.one("p", class_="pages").all("a")[0] for page in pages)
    assert later.text.startswith("Later steps")
    assert str(earlier.attributes["href"]).endswith("start=960")
