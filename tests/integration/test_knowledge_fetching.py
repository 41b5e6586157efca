"""Fetching entities of Wikidata from a server that answers as its API does."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import CliRunner

from cotrail.cli.commands.knowledge import knowledge
from cotrail.configuration.settings import settings
from cotrail.engines.knowledge.store import KnowledgeStore
from cotrail.engines.knowledge.wikidata import building
from cotrail.engines.knowledge.wikidata.building import fetch_wikidata
from cotrail.errors import InputError, UnavailableError
from tests.unit.made_knowledge import Json, claim, dump, item, item_value, minnesota, property_, time

Answer = Callable[[Mapping[str, str]], tuple[int, bytes]]


def wikidata(entities: Sequence[Json], titles: Mapping[str, str]) -> Answer:
    """Answers `wbgetentities` as the API does."""
    known = {entity["id"]: entity for entity in entities if "labels" in entity}

    def answer(asked: Mapping[str, str]) -> tuple[int, bytes]:
        assert (asked["action"], asked["format"]) == ("wbgetentities", "json")
        found: dict[str, Any] = {}
        for id_ in asked.get("ids", "").split("|"):
            if id_ in known:
                found[id_] = {
                    key: known[id_][key] for key in ("type", "id", *asked["props"].split("|")) if key in known[id_]
                }
            elif id_:
                found[id_] = {"id": id_, "missing": ""}
        for title in asked.get("titles", "").split("|"):
            if title in titles:
                found[titles[title]] = known[titles[title]]
            elif title:
                found["-1"] = {"site": asked["sites"], "title": title, "missing": ""}
        return 200, json.dumps({"entities": found, "success": 1}).encode()

    return answer


@contextmanager
def served(answer: Answer) -> Iterator[tuple[str, list[Mapping[str, str]]]]:
    """An HTTP server with the answer; its address, and what it is asked."""
    asked: list[Mapping[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append({key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()})
            status, body = answer(asked[-1])
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named so by the library
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/w/api.php", asked
        server.shutdown()
        thread.join()


def said(folder: Path, text: str) -> list[str]:
    return [hit.paragraph.text for hit in KnowledgeStore(folder).open("wikidata").lookup(text, "")]


TITLES = {"Aristotle": "Q868", "Tim Pawlenty": "Q1"}


def test_entities_come_by_id_and_title_with_the_labels_they_need(tmp_path: Path) -> None:
    with served(wikidata(minnesota(), TITLES)) as (url, asked):
        about = fetch_wikidata(["Q868", "Tim Pawlenty"], url, tmp_path / "wikidata")
    assert about.counts == {"items": 2, "properties": 3, "statements": 3, "labels": 1}
    assert said(tmp_path, "Aristotle died.")[0] == "Aristotle died in 322 BC."
    assert said(tmp_path, "Tim Pawlenty.") == [
        "Tim Pawlenty held the position of Governor of Minnesota from 2003 to 2011."
    ]
    assert said(tmp_path, "The Governor of Minnesota.") == []
    assert {each["languages"] for each in asked} == {"en|mul"}
    assert [each["sites"] for each in asked if "titles" in each] == ["enwiki"]


def test_what_is_there_stays_and_a_label_becomes_an_entity(tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text(dump([item("Q868", "Aristotle the Stagirite", {"P570": [claim(time(-322))]})]))
    store = KnowledgeStore(tmp_path)
    store.build("wikidata", [tmp_path / "dump.json"])
    entities = [
        item("Q868", "Aristotle", {"P570": [claim(time(-300))]}),
        item("Q1", "Ann", {"P26": [claim(item_value("Q2"), P580=time(1990))]}),
        item("Q2", "Ben", {"P26": [claim(item_value("Q1"), P582=time(1991))]}),
        property_("P26", "spouse"),
        property_("P570", "date of death"),
    ]
    with served(wikidata(entities, {})) as (url, _):
        fetch_wikidata(["Q868", "Q1"], url, tmp_path / "wikidata")
        former = store.open("wikidata")
        assert said(tmp_path, "Aristotle the Stagirite died.") == ["Aristotle the Stagirite died in 322 BC."]
        assert said(tmp_path, "Ann met Ben.") == ["Ann was married to Ben since 1990."]
        fetch_wikidata(["Q2"], url, tmp_path / "wikidata")
    assert set(said(tmp_path, "Ann met Ben.")) == {
        "Ann was married to Ben since 1990.",
        "Ben was married to Ann until 1991.",
    }
    assert store.revision("wikidata") != former.revision


def test_no_more_are_asked_for_than_the_server_gives_at_once(tmp_path: Path) -> None:
    count = 2 * building.MOST_ENTITIES + 1
    entities = [item(f"Q{number}", f"Item {number}") for number in range(1, count + 1)]
    with served(wikidata(entities, {})) as (url, asked):
        about = fetch_wikidata([entity["id"] for entity in entities], url, tmp_path / "wikidata")
    assert about.counts["items"] == count
    assert [len(each["ids"].split("|")) for each in asked] == [building.MOST_ENTITIES, building.MOST_ENTITIES, 1]


@pytest.mark.parametrize("name", ["Q404", "Nobody at all"])
def test_names_that_are_not_there_are_told_and_nothing_is_changed(tmp_path: Path, name: str) -> None:
    with served(wikidata(minnesota(), TITLES)) as (url, _), pytest.raises(InputError, match=f"has no {name}"):
        fetch_wikidata(["Q868", name], url, tmp_path / "wikidata")
    assert KnowledgeStore(tmp_path).names() == ("table",)


@pytest.mark.parametrize(
    ("status", "body", "error", "message"),
    [
        (429, b"", UnavailableError, "429"),
        (500, b"oops", UnavailableError, "500"),
        (200, b"<html>a page</html>", UnavailableError, "check that an API is there"),
        (200, b'{"batchcomplete": ""}', UnavailableError, "check that an API"),
        (200, b'{"error": {"code": "no-such-entity", "info": "Could not find Q1."}}', InputError, "Could not find Q1"),
    ],
)
def test_a_server_that_gives_no_entities_is_told(
    tmp_path: Path, status: int, body: bytes, error: type[Exception], message: str
) -> None:
    with served(lambda _: (status, body)) as (url, _), pytest.raises(error, match=message):
        fetch_wikidata(["Q868"], url, tmp_path / "wikidata")


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="returns no entities"):
        fetch_wikidata(["Q868"], "http://127.0.0.1:9/w/api.php", tmp_path / "wikidata")


def test_the_command_adds_entities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    with served(wikidata(minnesota(), TITLES)) as (url, _):
        arguments = ["wikidata", "--fetch", "Aristotle", "--fetch", "Q1", "--url", url]
        result = CliRunner().invoke(knowledge, arguments, catch_exceptions=False)
    assert "items: 2" in result.output
    assert said(tmp_path / "knowledge", "Aristotle died.")[0] == "Aristotle died in 322 BC."


def test_without_an_address_nothing_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    result = CliRunner().invoke(knowledge, ["wikidata", "--fetch", "Aristotle"])
    assert result.exit_code == 2
    assert "--url" in result.output


@pytest.mark.parametrize(
    "url",
    [
        "http://ada:hunter2@host/w/api.php",
        "http://host/w/api.php?token=hunter2",
        "http://ada:hunter2/x@host/",
        "no address",
        "ftp://x/",
    ],
)
def test_an_address_that_is_none_or_has_a_password_is_refused_and_not_quoted(tmp_path: Path, url: str) -> None:
    with pytest.raises(InputError, match="--url") as refused:
        fetch_wikidata(["Q1"], url, tmp_path)
    assert "hunter2" not in str(refused.value)
