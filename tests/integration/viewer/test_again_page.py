"""The page on which a step is tried again: what it shows, what it begins, and what it says where that can't be."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient
from sqlalchemy import Engine, select

from benchmarks.costless import SENTENCES
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.traces import rebuild_prompt
from cotrail.models.schema.tables import runs, steps
from cotrail.systems.registry import find_system
from tests.cases import each_case
from tests.integration.asked_service import bearer, service
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import LEASE, begin, run_to_end
from tests.integration.test_forking import ORIGIN, agrees, carry_out, home
from tests.integration.viewer.read_pages import BROWSER, Element, check_nothing_runs, page_at, read_page

__all__ = ["home"]

SEARCH, SENTENCE = 2, 3
HOSTILE = '<script>alert(1)</script>"></textarea><svg onload=alert(1)>{{7*7}} \u202e'


@pytest.fixture
def ledger(engine: Engine) -> Ledger:
    return Ledger(engine, "w", LEASE, find_system)


@pytest.fixture
def client(engine: Engine, ledger: Ledger, home: Path, cotrail: Cotrail) -> Iterator["TestClient[Any]"]:
    """The service on a store with a run of two questions, all finished."""
    run_to_end(ledger, begin(engine, 2))
    with service() as made:
        yield made


def address(step: int) -> str:
    return f"/runs/{ORIGIN}/questions/q0/steps/{step}/again"


def fields(page: Element) -> dict[str, str]:
    """What a browser sends of the form as it stands."""
    areas = {str(each.attributes["name"]): "".join(map(str, each.children)) for each in page.all("textarea")}
    [chosen] = [each.text for each in page.one("select").all("option") if "selected" in each.attributes]
    return {name: _ended(value.removeprefix("\n")) for name, value in areas.items()} | {"model": chosen}


def _ended(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def send(client: "TestClient[Any]", step: int, **changes: str) -> Any:
    sent = fields(page_at(client, address(step))) | changes
    return client.post(address(step), data=sent, headers=BROWSER, follow_redirects=False)


def forked(query: Query, answer: Any) -> dict[str, Any]:
    """The row of the run to which the browser is sent."""
    assert answer.status_code == 303, answer.text
    [row] = query(select(runs).where(runs.c.id != ORIGIN))
    assert answer.headers["location"] == f"/compare/question?run={ORIGIN}&run={row['id']}&question=q0"
    return row


def edits(query: Query) -> list[tuple[int, dict[str, str]]]:
    rows = query(select(steps.c.sequence, steps.c.edit).where(steps.c.edit.is_not(None)))
    return [(row["sequence"], row["edit"]) for row in rows]


def refused(answer: Any) -> Element:
    """The form that says why nothing was begun."""
    assert answer.status_code == 200, answer.text
    page = read_page(answer.text)
    check_nothing_runs(page)
    return page


def test_the_form_shows_the_parts_that_a_step_has(client: "TestClient[Any]", engine: Engine) -> None:
    search = fields(page_at(client, address(SEARCH)))
    assert search == {"query": SENTENCES[0], "settings": "", "model": "costless"}
    sentence = fields(page_at(client, address(SENTENCE)))
    with engine.connect() as connection:
        asked = rebuild_prompt(connection, ORIGIN, "q0", SENTENCE)
    assert sentence.keys() == {"text", "prompt", "settings", "model"}
    assert (sentence["text"], sentence["prompt"].replace("\r\n", "\n")) == (SENTENCES[1], asked)


def test_it_shows_where_the_step_stands(client: "TestClient[Any]") -> None:
    page = page_at(client, address(SENTENCE))
    assert page.one("ol", class_="chain").text.startswith("0 · searched for")
    assert page.one("li", aria_current="step").text.startswith("3 · reason")
    assert "reading.reader" in page.one("dl").text
    assert [each.text for each in page.one("select").all("option")][::2] == ["costless", "other"]


def test_another_query_begins_a_fork_and_leads_to_it(
    client: "TestClient[Any]", engine: Engine, ledger: Ledger, query: Query
) -> None:
    row = forked(query, send(client, SEARCH, query="Who was born in Sild?"))
    assert (row["origin"], row["forked_at"], row["size"]) == (ORIGIN, "2", 1)
    assert edits(query) == [(SEARCH, {"query": "Who was born in Sild?", "by": "local"})]
    beside = f"/compare/question?run={ORIGIN}&run={row['id']}&question=q0"
    under_way = page_at(client, beside)
    assert under_way.one("body").attributes["data-events"] == f"/v1/runs/{row['id']}/questions/q0/events"
    assert "as the system asked / query edited by local" in under_way.one("p", class_="parting").text
    carry_out(engine, ledger)
    assert agrees(engine, row["id"])
    ended = page_at(client, beside)
    assert "data-events" not in ended.one("body").attributes
    assert "as the system asked / query edited by local" in ended.one("div", id="steps").text


def test_what_is_still_to_come_is_no_difference(client: "TestClient[Any]", engine: Engine, query: Query) -> None:
    row = forked(query, send(client, SENTENCE, model="other"))
    beside = f"/compare/question?run={ORIGIN}&run={row['id']}&question=q0"
    assert page_at(client, beside).one("p", class_="parting").text == "The traces are the same so far."


@pytest.mark.parametrize("part", ["text", "prompt"])
def test_another_sentence_or_prompt_begins_a_fork(part: str, client: "TestClient[Any]", query: Query) -> None:
    forked(query, send(client, SENTENCE, **{part: "It is\r\nfar." if part == "prompt" else "It is far."}))
    assert edits(query) == [(SENTENCE, {part: "It is\nfar." if part == "prompt" else "It is far.", "by": "local"})]


def test_what_is_left_as_it_was_is_no_edit(client: "TestClient[Any]", query: Query) -> None:
    row = forked(query, send(client, SENTENCE, model="other", settings="retrieval_count = 2\r\n\r\n seed=7"))
    assert edits(query) == []
    assert (row["model_name"], row["seed"], row["settings"]["retrieval"]["retrieval_count"]) == ("other", 7, 2)


@each_case(
    ("step", "changes", "said"),
    [
        (SEARCH, {"settings": "retrieval_cuont = 2"}, "there is no 'retrieval_cuont' to set"),
        (SEARCH, {"settings": "retrieval_count"}, "sets nothing"),
        (SEARCH, {"settings": "retrieval_count = many"}, "settings of ircot"),
        (SEARCH, {"model": "unknown"}, "unknown"),
        (SEARCH, {"query": ""}, "the query is empty"),
        (SENTENCE, {"text": "a", "prompt": "b"}, "text and prompt is given"),
        (SENTENCE, {"text": "a\r\nb"}, "one line"),
    ],
)
def test_what_can_not_be_is_said_on_the_form_which_keeps_what_was_typed(
    step: int, changes: dict[str, str], said: str, client: "TestClient[Any]", query: Query
) -> None:
    page = refused(send(client, step, **changes))
    assert said in page.one("p", role="alert").text
    kept = fields(page) if "model" not in changes else {}
    assert {name: kept[name] for name in changes if name != "model"} == {
        name: value for name, value in changes.items() if name != "model"
    }
    assert [row["id"] for row in query(select(runs.c.id))] == [ORIGIN]


def test_texts_of_whoever_types_stay_texts(client: "TestClient[Any]") -> None:
    page = refused(send(client, SEARCH, query=HOSTILE, settings=HOSTILE))
    assert fields(page)["query"] == fields(page)["settings"] == HOSTILE


def test_a_hostile_query_is_shown_as_it_was_and_can_be_tried_again(
    client: "TestClient[Any]", engine: Engine, ledger: Ledger, query: Query
) -> None:
    row = forked(query, send(client, SEARCH, query=HOSTILE))
    carry_out(engine, ledger)
    again = page_at(client, f"/runs/{row['id']}/questions/q0/steps/{SEARCH}/again")
    assert fields(again)["query"] == HOSTILE
    assert "searched for" in again.one("li", aria_current="step").text


@each_case(("step", "status"), [("99", 422), ("-1", 422), ("none", 422)])
def test_a_step_that_is_not_there_is_named(step: str, status: int, client: "TestClient[Any]") -> None:
    page_at(client, f"/runs/{ORIGIN}/questions/q0/steps/{step}/again", status)


def test_whoever_may_only_read_begins_nothing(client: "TestClient[Any]", query: Query) -> None:
    made = client.post("/v1/tokens", json={"name": "reader", "scopes": ["read"]}).json()
    reader = BROWSER | bearer(made["secret"])
    assert client.get(address(SEARCH), headers=reader).status_code == 403
    assert client.post(address(SEARCH), data={"query": "a"}, headers=reader).status_code == 403
    assert [row["id"] for row in query(select(runs.c.id))] == [ORIGIN]
