"""The page on a question, and those of its steps."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Engine

from cotrail.common.humanize import count
from cotrail.configuration.settings import Settings, settings
from cotrail.core.questions import Question
from cotrail.systems.registry import find_system
from cotrail.viewer.page import link
from tests.integration import judged
from tests.integration.asked_service import bearer, service
from tests.integration.ended import end_run
from tests.integration.odd.driving import FOUND, ended, finding, writes
from tests.integration.viewer import turned
from tests.integration.viewer.read_pages import BROWSER, Element, page_at, read_page
from tests.unit.made_trees import mark, tree
from tests.unit.test_rethinking_tables import weighing

Read = Callable[..., Element]

MOST_ELEMENTS = 3000


@pytest.fixture
def client(engine: Engine, database: str, servers: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The service in this process."""
    monkeypatch.setenv("COTRAIL_DATABASE_URL", database.replace("+psycopg", ""))
    monkeypatch.setenv("COTRAIL_BROKER_URL", servers.broker)
    settings.cache_clear()
    with service() as made:
        yield made


@pytest.fixture
def read(client: Any) -> Read:
    """Reads a page of it."""
    return partial(page_at, client)


def address(run: str, question: str, *further: str, **query: Any) -> str:
    return link("runs", run, "questions", question, *further, **query)


def key(number: int) -> str:
    return f"q {number}/{turned.HOSTILE}"


def having(page: Element, attribute: str) -> list[Element]:
    return [each for each in page.all() if attribute in each.attributes]


def values(page: Element, attribute: str) -> list[str]:
    return [str(each.attributes[attribute]) for each in having(page, attribute)]


def test_the_answer_stands_beside_the_gold_one_with_what_went_wrong(engine: Engine, read: Read) -> None:
    run = turned.answer(engine, 4)
    page = read(address(run, "2"))
    head = page.one(id="asked").text
    for said in ("question 2 of 3", "Answer Marlow ✗ wrong", "Gold Grayle", "EM 0.0 %", "paragraph recall 66.7 %"):
        assert said in head
    assert "gold never found" in head
    for relation, leads in (("up", f"/runs/{run}"), ("prev", address(run, key(0))), ("next", address(run, key(2)))):
        assert page.one("a", rel=relation).attributes["href"] == leads


def test_a_line_says_in_which_turns_the_gold_paragraphs_were_found(engine: Engine, read: Read) -> None:
    page = read(address(turned.answer(engine, 4), "1"))
    said = "Gold found: 1 of 3 at turn 1, 2 of 3 at turn 3"
    assert len(page.one("svg", aria_label=said).all("circle")) == 2
    got, missed = page.all("li", class_="got"), page.all("li", class_="missed")
    assert [each.one("a").text for each in got] == ["found in turn 1", "found in turn 3"]
    assert ["not found" in each.text for each in missed] == [True]


def test_a_card_has_a_search_with_what_it_found_and_the_sentence_written_from_it(engine: Engine, read: Read) -> None:
    run = turned.answer(engine, 4)
    first, second, third = having(read(address(run, "1")), "data-turn")
    hits = first.all("li")
    assert [each.attributes["value"] for each in hits] == ["1", "2", "3"]
    assert ["data-gold" in each.attributes for each in hits] == [False, True, False]
    assert [each.text for each in hits[1].all("mark")] == ["what", "bridge", "1"]
    assert "★ gold" in hits[1].text
    assert "So it is." in first.text
    assert "Let me see." in first.one("details", class_="more thoughts").text
    [failed] = having(second, "data-error")
    assert "StepError: it can't be searched for" in failed.text
    assert "seen in turn 1" in third.all("li")[0].text
    assert third.all("a")[0].attributes["href"] == f"{address(run, '1', turns=3)}#turn-3"


def test_the_outline_lists_the_turns_that_have_a_text(engine: Engine, read: Read) -> None:
    run = turned.answer(engine, 12)
    whole = read(address(run, "1"))
    page = read(address(run, "1", find="BRIDGE 2"))
    outline = page.one(id="outline")
    listed = [int(each.text.split()[0]) for each in outline.all("li")]
    shown = {each.attributes["id"]: each.text.casefold() for each in having(whole, "data-turn")}
    assert 0 < len(listed) < len(shown)
    assert [f"turn-{each}" for each in listed] == [name for name, text in shown.items() if "bridge 2" in text]
    assert f"{count(len(listed), 'turn')} of {len(shown)}." in outline.text
    assert str(outline.all("a")[-1].attributes["href"]).endswith(":~:text=BRIDGE%202")
    assert page.one("input", name="find").attributes["value"] == "BRIDGE 2"
    assert f"0 turns of {len(shown)}" in read(address(run, "1", find="no such words")).one(id="outline").text


def test_what_people_and_models_wrote_is_only_text(engine: Engine, read: Read) -> None:
    run = turned.answer(engine, 4)
    for further in ((), ("steps", "1"), ("steps", "2")):
        page = read(address(run, key(0), *further))
        assert not page.all("img")
        assert "<script>alert(1)</script>" in page.text


def test_ids_are_given_once_and_links_within_the_page_lead_somewhere(engine: Engine, read: Read) -> None:
    page = read(address(turned.answer(engine, 4), "1"))
    ids = values(page, "id")
    assert len(ids) == len(set(ids))
    assert {each[1:] for each in values(page, "href") if each.startswith("#")} <= set(ids)


def test_texts_are_folded_all_or_none(engine: Engine, read: Read) -> None:
    run = turned.answer(engine, 4)
    opened = {
        fold: "open" in read(address(run, "1", fold=fold)).one(id="thoughts-1").attributes
        for fold in ("", "none", "all")
    }
    assert opened == {"": False, "none": True, "all": False}


def test_a_step_s_page_has_what_is_recorded_of_it(engine: Engine, read: Read) -> None:
    run = turned.answer(engine, 4)
    loaded = values(read(address(run, "1")), "data-load")[1]
    assert loaded == f"{address(run, key(0), 'steps', '1')}#record"
    page = read(loaded.partition("#")[0])
    record, prompt = page.one(id="record").text, page.one(id="prompt-1").text
    assert "120 tokens read, 20 of them from the cache; 7 written" in record
    assert [row.all("td")[0].text for row in page.all("tr") if "left out" in row.text] == ["Page 1, 3"]
    assert "Which town has bridge 0?" in prompt
    assert "Page 1, 3" not in prompt
    assert page.one("a", rel="up").attributes["href"] == address(run, key(0))
    assert "StepError: it can't be searched for" in read(address(run, "1", "steps", "2")).one(id="record").text
    read(address(run, "1", "steps", "99"), status=404)


def test_only_who_may_submit_is_offered_to_try_again(engine: Engine, client: Any, read: Read) -> None:
    step = address(turned.answer(engine, 4), key(0), "steps", "1")
    again = f"{step}/again"
    assert again in values(read(step), "href")
    made = client.post("/v1/tokens", json={"name": "reader", "scopes": ["read"]}).json()
    answer = client.get(step, headers=BROWSER | bearer(made["secret"]))
    assert answer.status_code == 200
    assert again not in values(read_page(answer.text), "href")


def test_a_question_under_way_is_followed(engine: Engine, read: Read) -> None:
    page = read(address(turned.answer(engine, 6, steps=5), "1"))
    assert page.one("body").attributes["data-events"] == f"/v1{address('turned', key(0), 'events')}"
    writing = page.one(id="writing")
    assert "hidden" in writing.attributes
    last = writing.all()[-1]
    assert (last.name, last.text) == ("p", "")
    ended = read(address(turned.answer(engine, 4, run="ended"), "1"))
    assert not having(ended, "data-events")


def test_a_thousand_steps_are_paged(engine: Engine, read: Read) -> None:
    run = turned.answer(engine, 5)
    turned.lengthen(engine, run, 1000)
    first, later = read(address(run, "1")), read(address(run, "1", turns=400))
    for page in (first, later):
        assert "1000 steps" in page.one(id="asked").text.replace(",", "")
        assert len(page.all()) <= MOST_ELEMENTS
    assert "turn-400" in [each.attributes["id"] for each in having(later, "data-turn")]
    for page in (first, later):
        for leads in ("data-gold", "data-error"):
            assert str(having(page, leads)[-1].attributes["href"]).startswith(address(run, "1", turns=""))


def test_a_tree_is_drawn_as_a_tree(engine: Engine, read: Read) -> None:
    asked = [Question(id="q0", text="Who built it?", answers=("Ada",))]
    drawn = tree("mc- df", path=(0, 1, 4), final=f"Ada [1]. {turned.HOSTILE}", marks=[mark("Ada", 0)])
    page = read(address(end_run(engine, asked, [drawn], system="searchain"), "q0"))
    nodes = [each.text for each in page.all("li") if str(each.attributes.get("class")).startswith("node")]
    assert sorted(each[:7] for each in nodes) == [f"Query {number}" for number in range(5)]
    assert "Final content Ada [1]." in page.one(id="drawn").text


def test_votes_are_drawn_with_the_chains_behind_them(engine: Engine, read: Read) -> None:
    asked = [Question(id="q0", text="Is it?", answers=("yes",))]
    votes = weighing([("no", 0.1), ("yes", 0.9), ("no", 0.2)])
    page = read(address(end_run(engine, asked, [votes], system="rethinking", dataset="strategyqa"), "q0"))
    drawn = page.one(id="drawn")
    assert [each.attributes["id"] for each in drawn.all("article")] == [f"q-1-chain-{number}" for number in (1, 2, 3)]
    assert "✓ right" in drawn.text


def test_evidence_stands_in_tables_and_is_folded_by_chain(engine: Engine, read: Read) -> None:
    asked = [Question(id="q0", text="Does it lie on the Vell?", answers=("yes",))]
    ended(engine, "weighed", asked, finding(FOUND, writes(answer="yes")), find_system("rethinking"))
    page = read(address("weighed", "q0"))
    kinds = {row.all("td")[1].text.partition(",")[0] for row in page.one(id="turns").all("tbody")[0].all("tr")}
    assert kinds & {"embed", "entail"}
    assert not [each for kind in ("embed", "entail") for each in page.all("div", class_=f"step {kind}")]
    drawn = page.one(id="drawn")
    folded = [each for fold in drawn.all("details") for each in fold.all("ul", class_="facts")]
    assert folded == drawn.all("ul", class_="facts") != []


def test_each_time_has_the_same_name_everywhere(engine: Engine, read: Read) -> None:
    run = turned.answer(engine, 2)
    page = read(address(run, "1"))
    time = page.one("figure", id="time")
    assert "steps claimed for" in time.one("figcaption").text
    assert all(": waiting for" in each.text and "claimed for" in each.text for each in time.all("title"))
    records = [each.text for each in page.all("details") if str(each.attributes.get("id")).startswith("record-")]
    assert any("computed in" in each for each in records)
    step = read(address(run, "1", "steps", "0"))
    assert "Computed in" in [each.text for each in step.all("dt")]
    assert "Claimed for" in [each.text for each in step.all("th")]
    began = [each.text for each in step.all("td", data_name="began")]
    assert began == [each for each in began if re.fullmatch(r"[-0-9]+ [:0-9]+ \w+", each)] != []


def test_a_long_answer_leaves_room_for_what_stands_below_it(engine: Engine, read: Read) -> None:
    long = "<b>So</b> " + "It lies on the Vell. " * 40
    asked = [Question(id="q0", text="Where is it?", answers=(long, "Marlow"))]
    head = read(address(end_run(engine, asked, [None], answer=long), "q0")).one(id="asked")
    for name in ("answer", "gold-answer-1"):
        fold = head.one("details", id=name)
        assert "open" not in fold.attributes
        assert len(fold.one("summary").text) <= 200
        assert fold.one("div").text == " ".join(long.split())
    assert "Marlow" in head.text


def test_people_say_in_the_browser_why_an_answer_is_wrong(engine: Engine, client: Any, read: Read) -> None:
    run, said = turned.answer(engine, 4), f"two\nlines {turned.HOSTILE}"
    for cause, note in (("reader wrong", "first"), ("gold never found", said)):
        form = read(address(run, key(1))).one("form", action=address(run, key(1), "labels"))
        chosen = {"annotator": "Ada", "cause": cause, "note": note.replace("\n", "\r\n")}
        assert {str(each.attributes["name"]) for each in form.all() if "name" in each.attributes} == chosen.keys()
        answered = client.post(str(form.attributes["action"]), data=chosen, follow_redirects=False)
        assert answered.headers["location"].endswith("#labels")
    labels = read(address(run, key(1))).one(id="labels")
    assert [each.text for each in labels.all("dt")] == ["Ada"]
    assert labels.one("span", dir="auto").text.startswith("two lines </bdi></script><script>")
    assert not labels.all("script") + labels.all("img")
    assert not read(address(run, key(0))).one(id="labels").all("dt"), "it is said of one question"
    refused = client.post(address(run, key(1), "labels"), data=chosen | {"cause": "bad luck"}, follow_redirects=False)
    assert refused.status_code == 422


def test_judges_say_what_they_think_of_it_and_a_judge_s_question_what_it_graded(engine: Engine, read: Read) -> None:
    run = judged.answer(engine)
    judge = judged.judge(engine, judged.verdicts({"q0": judged.verdict("correct", 90)}), name="grader")
    assert "correct (90 % sure)" in read(address(run, "q0")).one(id="asked").text
    own = read(address(judge, "q0")).one(id="drawn").text
    assert f"What was graded {run}" in own
    assert "It is correct." in own
