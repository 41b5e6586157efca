"""The list of a run's questions, a page at a time, and a run that is watched while its server is away."""

from collections.abc import Iterator
from typing import Any

import pytest
from litestar.testing import TestClient
from sqlalchemy import Engine

from cotrail.api.app import application
from cotrail.configuration.settings import settings
from cotrail.errors import CotrailError, UnavailableError
from cotrail.services.runs import watching
from cotrail.services.runs.progress import RunReading, read_again
from cotrail.services.runs.speed import WatchedRun
from tests.integration.asked_service import HERE, FromHere
from tests.integration.recorded import OPEN, PLAIN


@pytest.fixture
def client(store: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient[Any]]:
    url = store.url.render_as_string(hide_password=False)
    monkeypatch.setenv("COTRAIL_DATABASE_URL", url.replace("+psycopg", ""))
    settings.cache_clear()
    with TestClient(FromHere(application()), base_url=HERE) as client:
        yield client


def pages(client: TestClient[Any], run: str, query: str) -> Iterator[list[dict[str, Any]]]:
    after = ""
    while True:
        page = client.get(f"/v1/runs/{run}/questions?{query}{after}").json()
        yield page["questions"]
        if page["after"] is None:
            return
        after = f"&after={page['after']}"


def test_pages_follow_each_other_without_a_gap(client: TestClient[Any]) -> None:
    [whole] = pages(client, PLAIN, "limit=100")
    assert [each["number"] for each in whole] == [1, 2, 3, 4, 5, 6]
    parts = list(pages(client, PLAIN, "limit=4"))
    assert [len(part) for part in parts] == [4, 2]
    assert [each for part in parts for each in part] == whole


def test_questions_of_some_statuses_stay_in_order(client: TestClient[Any]) -> None:
    [whole] = pages(client, OPEN, "limit=100")
    named = [each for part in pages(client, OPEN, "limit=1&status=open&status=blocked") for each in part]
    assert named == [each for each in whole if each["status"] in ("open", "blocked")]
    assert {each["status"] for each in named} == {"open", "blocked"}


def test_what_is_no_page_is_refused(client: TestClient[Any]) -> None:
    asked = {
        f"/v1/runs/{PLAIN}/questions?after=nothing": 404,
        "/v1/runs/nowhere/questions": 404,
        f"/v1/runs/{PLAIN}/questions?limit=0": 422,
        f"/v1/runs/{PLAIN}/questions?status=odd": 422,
        "/v1/runs?limit=0": 422,
        "/v1/runs?limit=1": 200,
        "/v1/runs": 200,
        "/v1/prunable?older_than=1e300": 422,
        "/v1/prunable?older_than=nan": 422,
        "/v1/prunable?older_than=1.5": 200,
    }
    assert {place: client.get(place).status_code for place in asked} == asked


def test_an_export_that_is_refused_says_so_with_a_status(client: TestClient[Any]) -> None:
    answer = client.get("/v1/runs/nowhere/export")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


def test_a_server_that_is_away_is_waited_for_once_a_run_is_watched(
    store: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "POLL_SECONDS", 0)
    monkeypatch.setattr(watching, "LOST_SECONDS", 0)
    away = UnavailableError("the server at http://there doesn't answer (refused); check the address")
    with store.connect() as connection:
        begun, ended = read_again(connection, OPEN), read_again(connection, PLAIN)
    answers: list[RunReading | CotrailError] = [begun, away, away, ended]
    shown: list[WatchedRun] = []

    def read(_: str) -> RunReading:
        answer = answers.pop(0)
        if isinstance(answer, CotrailError):
            raise answer
        return answer

    assert watching.watch(OPEN, read, shown.append).run == PLAIN
    said = "The server at http://there doesn't answer (refused); check the address. This command waits for it."
    assert [each.waits_for == said for each in shown] == [False, True, True, False]
    answers.append(away)
    with pytest.raises(UnavailableError):
        watching.watch(OPEN, read, shown.append)
