"""Asking, corpora, workers and the audit trail in the viewer, on real runs and a real index."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from litestar.testing import TestClient
from sqlalchemy import Engine, text, update

from benchmarks.costless import PARAGRAPHS
from cotrail.configuration.settings import settings
from cotrail.core.ports.retriever import SearchRequest
from cotrail.core.questions import Hit, Paragraph
from cotrail.engines.retrieval.engine import ENGINES, FolderEngine, NewIndex, NoSettings
from cotrail.engines.retrieval.manifest import FolderManifest, Ranking
from cotrail.engines.retrieval.stores import FolderStore, build_index
from cotrail.errors import TransientStepError
from cotrail.models.commands.control import pause
from cotrail.models.execution.ledger import Ledger
from cotrail.models.schema.tables import questions
from cotrail.systems.registry import find_system
from cotrail.viewer.pages import workers
from cotrail.viewer.rendering import marked
from tests.cases import each_case
from tests.integration.asked_service import HERE, bearer, service, write_home
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import LEASE, begin, close_runs, run_to_end
from tests.integration.viewer.read_pages import BROWSER, Element, check_nothing_runs, page_at, read_page

HOSTILE = '<script>alert(1)</script>"><svg onload>{{7*7}}'
ODD = Paragraph(id=f"odd/{HOSTILE}", title=HOSTILE, text=f"Bridges {HOSTILE} were bridged.")
TWIN = Paragraph(id="twin", title=HOSTILE, text="Another one.")
FORM = {"Origin": HERE, "Sec-Fetch-Site": "same-origin"}

Browser = TestClient[Any]


@pytest.fixture
def client(tmp_path: Path, cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    """The service with a scripted model and a corpus."""
    home = tmp_path / "home"
    monkeypatch.setenv("COTRAIL_HOME", str(home))
    monkeypatch.setenv("COTRAIL_MODEL", "scripted")
    settings.cache_clear()
    write_home(home)
    build_index([*PARAGRAPHS, ODD, TWIN], home / "corpora" / "towns")
    with service() as made:
        made.follow_redirects = False
        yield made


def sent(client: Browser, address: str, fields: dict[str, str], **headers: str) -> Any:
    """What a form of the viewer's own is answered with."""
    return client.post(address, data=fields, headers={**BROWSER, **FORM, **headers})


def rows(table: Element) -> list[str]:
    """The rows of a table's body, as they are read."""
    return [row.text for row in table.one("tbody").all("tr")]


def chosen(page: Element, name: str) -> str | None:
    """What is chosen in a list of a form."""
    [option] = [each for each in page.one("select", name=name).all("option") if "selected" in each.attributes]
    return option.attributes["value"]


def test_a_question_is_begun_by_the_form_and_goes_to_its_page(client: Browser) -> None:
    form = page_at(client, "/ask")
    assert (chosen(form, "system"), chosen(form, "corpus"), chosen(form, "model")) == ("ircot", "towns", "")
    answer = sent(client, "/ask", {"question": f"Who {HOSTILE}?", "system": "zero-shot", "seed": "7"})
    assert answer.status_code == 303, answer.text
    [run] = re.findall(r"^/runs/([^/]+)/questions/asked$", answer.headers["location"])
    recorded = client.get(f"/v1/runs/{run}").json()["configuration"]
    assert (recorded["asked"], recorded["system"], recorded["seed"]) == (True, "zero-shot", 7)
    page = page_at(client, "/ask")
    [asked] = rows(page.one("table", id="asked"))
    assert f"Who {HOSTILE}?" in asked
    assert "being answered" in asked
    assert page.one("body").attributes["data-every"] == "3"
    assert client.get("/v1/ask").json()["questions"][0]["run"] == run


@each_case(
    ("fields", "said"),
    [
        ({"question": "   ", "system": "zero-shot"}, "the question is empty"),
        ({"question": HOSTILE, "system": HOSTILE}, "no system"),
        ({"question": HOSTILE, "corpus": "nowhere"}, "no corpus"),
        ({"question": HOSTILE, "model": "nobody"}, "no model"),
        ({"question": HOSTILE, "seed": "many"}, "`seed`"),
        ({"question": HOSTILE, "temperature": "nan"}, "`temperature`"),
    ],
)
def test_a_refused_question_stays_on_the_form(client: Browser, fields: dict[str, str], said: str) -> None:
    answer = sent(client, "/ask", fields)
    assert answer.status_code == 200
    page = read_page(answer.text)
    check_nothing_runs(page)
    assert said in page.one("p", role="alert").text
    kept = {str(each.attributes["name"]): each.attributes["value"] for each in page.all("input", type="number")}
    kept["question"] = page.one("textarea").text
    assert all(kept[name] == fields[name].strip() for name in kept.keys() & fields.keys())
    assert not client.get("/v1/ask").json()["questions"]


def test_other_sites_and_readers_ask_nothing(client: Browser) -> None:
    fields = {"question": "Who?", "system": "zero-shot"}
    assert sent(client, "/ask", fields, Origin="https://evil.example").status_code == 403
    assert sent(client, "/ask", fields, **{"Sec-Fetch-Site": "cross-site"}).status_code == 403
    reader = bearer(client.post("/v1/tokens", json={"name": "reader", "scopes": ["read"]}).json()["secret"])
    assert sent(client, "/ask", fields, **reader).status_code == 403
    page = read_page(client.get("/ask", headers=BROWSER | reader).text)
    assert not page.all("form", action="/ask")
    assert not client.get("/v1/ask").json()["questions"]


def test_a_request_in_the_background_that_comes_twice_asks_once(client: Browser) -> None:
    request = {"question": "Who?", "system": "zero-shot"}
    first, second = (client.post("/v1/ask/background", json=request, headers={"Idempotency-Key": "k"}) for _ in "12")
    assert (first.status_code, second.status_code, second.json()) == (202, 202, first.json())
    other = client.post("/v1/ask/background", json={**request, "seed": 2}, headers={"Idempotency-Key": "k"})
    assert other.status_code == 409
    assert [each["run"] for each in client.get("/v1/ask").json()["questions"]] == [first.json()["run"]]


def test_questions_that_were_asked_are_listed_in_pages(client: Browser) -> None:
    runs = [
        client.post("/v1/ask/background", json={"question": f"Who is {n}?", "system": "zero-shot"}).json()["run"]
        for n in range(3)
    ]
    first = client.get("/v1/ask?limit=2").json()
    then = client.get(f"/v1/ask?limit=2&after={first['after']}").json()
    assert [each["run"] for each in (*first["questions"], *then["questions"])] == runs[::-1]
    assert then["after"] is None


def test_a_corpus_is_searched_in_each_way_side_by_side(client: Browser) -> None:
    [listed] = rows(page_at(client, "/corpora").one("table", id="corpora"))
    assert "towns 6 tantivy" in listed
    page = page_at(client, "/corpora/towns?q=bridge+town&k=3")
    whole, titles = (section for section in page.all("section") if "aria-labelledby" in section.attributes)
    assert len(whole.all("li")) == 3
    assert len(titles.all("li")) == 3
    assert {each.text for each in whole.all("mark")} == {"Town", "town", "bridge"}
    assert [each.attributes["value"] for each in titles.all("li")] == ["1", "2", "3"]
    scores = [float(str(each.attributes["value"])) for each in whole.all("meter")]
    assert scores == sorted(scores, reverse=True)

    nothing = page_at(client, "/corpora/towns?q=bridged&k=1").all("section")[1]
    assert "no paragraph has any of these words in its title" in nothing.text
    odd = page_at(client, "/corpora/towns?q=bridges+alert&distinct=true").all("section")[0]
    assert {each.text for each in odd.all("mark")} >= {"Bridges", "bridged", "alert"}
    assert ODD.text.replace(" ", "") in odd.text.replace(" ", "")


class Whole:
    """Finds the paragraphs of a folder that are the query, and nothing else."""

    revision = "1"

    def __init__(self, folder: Path, _: FolderManifest) -> None:
        self._paragraphs = msgspec.json.decode((folder / "all").read_bytes(), type=list[Paragraph])

    def search(self, request: SearchRequest) -> tuple[Hit, ...]:
        request.options_as(NoSettings)
        found = [each for each in self._paragraphs if each.text == request.query]
        return tuple(Hit(paragraph=each, rank=rank, score=1.0) for rank, each in enumerate(found, start=1))

    def paragraphs(self, ids: Sequence[str]) -> dict[str, Paragraph]:
        return {each.id: each for each in self._paragraphs if each.id in ids}

    def titled(self, title: str) -> tuple[Paragraph, ...]:
        return tuple(each for each in self._paragraphs if each.title == title)


def _build_whole(folder: Path, paragraphs: Iterable[Paragraph], _: NoSettings) -> None:
    (folder / "all").write_bytes(msgspec.json.encode(list(paragraphs)))


WHOLE = FolderEngine(name="whole", ranking=lambda _: Ranking(analyzer="none"), build=_build_whole, open=Whole)


def test_a_corpus_that_a_way_does_not_suit_says_so(
    client: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENGINES, WHOLE.name, WHOLE)
    build_index([TWIN], tmp_path / "home" / "corpora" / "whole", engine=WHOLE)
    page = page_at(client, "/corpora/whole?q=Another+one.")
    whole, titles = (section for section in page.all("section") if "aria-labelledby" in section.attributes)
    assert len(whole.all("li")) == 1
    assert "has no option 'field'" in titles.text


def test_a_corpus_with_embeddings_is_searched_in_each_way(
    client: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("faiss", reason="faiss isn't installed")
    from cotrail.engines.retrieval import embeddings
    from tests.integration.test_dense import Embedder

    monkeypatch.setattr(embeddings, "EMBEDDERS", Embedder())
    store = FolderStore(tmp_path / "home" / "corpora")
    store.build("both", [TWIN], new=NewIndex(engine="dense", settings={"model": "made-up"}))
    page = page_at(client, "/corpora/both?q=Another+one.")
    found = [each for each in page.all("section") if "aria-labelledby" in each.attributes]
    assert len(found) == 4
    assert "bm25 1" in found[0].text
    assert "dense 1" in found[0].text


def test_a_paragraph_tells_which_questions_found_it_page_by_page(client: Browser, engine: Engine) -> None:
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine, 2, id="found"))
    address = "/corpora/towns/paragraphs/p1"
    page = page_at(client, address)
    found = rows(page.one("table", id="uses"))
    assert found
    assert all("yes found" in each for each in found)
    assert {each.attributes["href"] for each in page.all("a") if "/questions/" in str(each.attributes["href"])} == {
        "/runs/found/questions/q0", "/runs/found/questions/q1"
    }  # fmt: skip
    digest, uses, after = PARAGRAPHS[0].digest, [], ""
    while after is not None:
        part = client.get(f"/v1/paragraphs/{digest}/uses?limit=1{after and f'&after={after}'}").json()
        uses += part["uses"]
        after = part["after"]
    assert uses == client.get(f"/v1/paragraphs/{digest}/uses").json()["uses"]
    assert len(uses) == len(found)
    assert client.get(f"/v1/paragraphs/{digest}/uses?after=1").status_code == 422

    client.post("/v1/projects", json={"name": "others"})
    other = client.post("/v1/tokens", json={"name": "t", "scopes": ["read"], "project": "others"}).json()
    assert client.get(f"/v1/paragraphs/{digest}/uses", headers=bearer(other["secret"])).json()["uses"] == []


def test_hostile_names_of_paragraphs_are_found_under_their_addresses(client: Browser) -> None:
    links = page_at(client, "/corpora/towns?q=bridges+alert").all("a")
    [address] = {str(each.attributes["href"]) for each in links if "odd" in str(each.attributes["href"])}
    page = page_at(client, address)
    assert page.one("h1").text == HOSTILE
    [twin] = [each for each in page.all("a") if each.text == "twin"]
    assert page_at(client, str(twin.attributes["href"])).one("h1").text == HOSTILE
    page_at(client, "/corpora/towns/paragraphs/nothing", 404)
    page_at(client, "/corpora/nowhere", 404)


def test_words_are_marked_within_what_is_escaped() -> None:
    assert (
        str(marked("<b> b & B's", ["b", "B's"])) == "&lt;<mark>b</mark>&gt; <mark>b</mark> &amp; <mark>B&#39;s</mark>"
    )


def test_workers_show_who_holds_what_and_what_waits_for_what(client: Browser, engine: Engine) -> None:
    assert "Nothing is under way." in page_at(client, "/workers").text
    ledger = Ledger(engine, f"{HOSTILE}:1:x", LEASE, find_system)
    held, put_off, ended = begin(engine, 3, id="busy")
    [claim, waits] = [claim for claim in ledger.claim([held, put_off]) if claim is not None]
    ledger.retry(waits, TransientStepError(f"not now {HOSTILE}"), 3600)
    run_to_end(Ledger(engine, "host:2:x", LEASE, find_system), [ended])
    begin(engine, 1, id="stays")
    pause(engine, "stays")

    page = page_at(client, "/workers")
    [retrieve] = [each for each in rows(page.one("section", id="queues").one("table")) if "retrieve" in each]
    assert retrieve.startswith("retrieve retrieval 0 1 1 1")
    busy = rows(page.one("section", id="busy").one("table"))
    [lates, idle] = sorted(busy, key=lambda row: "Process 2" in row)
    assert lates.startswith(f"retrieval {HOSTILE} 0.0 1 retrieve, held for ")
    assert "Process 1 " in lates
    assert "retrieve, step 0 of q0 in busy" in lates
    assert "step late" not in lates
    assert re.match(r"generation, retrieval host 0\.\d+ 0 Process 2 Carried out lately: ", idle)
    assert "3 reason steps" in idle
    waiting = rows(page.one("section", id="waits").one("table"))
    assert any(each.startswith("the run stays paused, with 1 open question") for each in waiting)
    assert any("1 retrieve step tried again in" in each and HOSTILE in each for each in waiting)
    assert "retried TransientStepError" in page.one("section", id="troubles").text
    assert claim.step_id == held.step_id

    with engine.begin() as connection:
        connection.execute(text("UPDATE steps SET started_at = started_at - interval '1 hour' WHERE state = 'running'"))
    assert any("retrieve, held for 1 h 00 min, usually" in row and "1 step late" in row for row in _busy(client))


def _busy(client: Browser) -> list[str]:
    return rows(page_at(client, "/workers").one("section", id="busy").one("table"))


def test_what_other_projects_ask_is_not_shown(client: Browser, engine: Engine) -> None:
    begin(engine, 1, id="ours")
    client.post("/v1/projects", json={"name": "others"})
    other = client.post("/v1/tokens", json={"name": "t", "scopes": ["read"], "project": "others"}).json()
    assert client.get("/v1/queues").json()["queues"]
    theirs = client.get("/v1/queues", headers=bearer(other["secret"])).json()
    assert not any(value for name, value in theirs.items() if name != "window_seconds")


def test_a_run_is_verified_and_compared_with_what_was_noted_down(client: Browser, engine: Engine) -> None:
    messages = begin(engine, 1, id="sealed")
    open_page = page_at(client, "/runs/sealed/audit?verify=true")
    assert "Not all of it is sealed yet: 1 question and 1 step haven't ended" in open_page.text
    assert page_at(client, "/runs/sealed/audit").one("body").attributes["data-events"] == "/v1/runs/sealed/events"
    run_to_end(Ledger(engine, "w", LEASE, find_system), messages)
    assert close_runs(engine) == ["sealed"]

    page = page_at(client, "/runs/sealed/audit")
    digest = client.get("/v1/runs/sealed/seals").json()["digest"]
    assert not page.all("div", role="status")
    assert page.one("code", id="digest").text == digest
    assert f"cotrail audit verify sealed --digest {digest}" in page.text
    assert "data-events" not in page.one("body").attributes
    assert "All of it is as it was recorded" in page_at(client, f"/runs/sealed/audit?verify=true&digest={digest}").text
    noted = page_at(client, "/runs/sealed/audit?verify=true&plan=ab").one("div", role="status").text
    assert "1 finding" in noted
    assert "ab was noted down" in noted
    [download] = [each for each in page.all("a") if "download" in each.attributes]
    assert client.get(str(download.attributes["href"])).content


@pytest.mark.amends
def test_findings_of_a_changed_record_are_shown_as_text(client: Browser, engine: Engine, query: Query) -> None:
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine, 1, id="changed"))
    close_runs(engine)
    query(update(questions).where(questions.c.run_id == "changed").values(answer=HOSTILE).returning(questions.c.id))
    said = page_at(client, "/runs/changed/audit?verify=true").one("div", role="status")
    assert "question q0" in said.text
    assert said.all("li")


def test_a_large_run_is_left_to_the_command(client: Browser, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(engine, 2, id="large")
    monkeypatch.setattr(workers, "MOST_VERIFIED", 1)
    page = page_at(client, "/runs/large/audit?verify=true")
    assert "longer than a page can" in page.text
    assert not page.all("button", class_="main")
    assert not page.all("div", role="status")
