"""What all pages of the viewer have: their frame, their headers, their errors."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from litestar.testing import TestClient

from cotrail.configuration.settings import settings
from tests.cases import each_case
from tests.integration.asked_service import bearer, service, upload, write_home
from tests.integration.conftest import Cotrail
from tests.integration.viewer.read_pages import BROWSER, page_at, read_page

HOSTILE = '<script>alert(1)</script>"><svg onload>{{7*7}}'


@pytest.fixture
def client(tmp_path: Path, cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch) -> Iterator["TestClient[Any]"]:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    request = write_home(tmp_path / "home")
    with service() as made:
        upload(made, tmp_path / "home", {})
        assert made.post("/v1/runs", json={**request, "name": "mine"}).status_code == 201
        yield made


def test_a_page_lets_nothing_run_but_its_own_file(client: "TestClient[Any]") -> None:
    answer = client.get("/", headers=BROWSER)
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    page = page_at(client, f"/?{urlencode({'q': HOSTILE})}")
    assert page.one("input", name="q").attributes["value"] == HOSTILE


def test_files_are_kept_by_browsers_until_they_change_and_are_small(client: "TestClient[Any]") -> None:
    page = page_at(client, "/")
    addresses = [page.one("script").attributes["src"], page.one("link", rel="stylesheet").attributes["href"]]
    answers = [client.get(str(address)) for address in addresses]
    assert all("immutable" in each.headers["cache-control"] for each in answers)
    assert [each.headers["content-type"].partition(";")[0] for each in answers] == ["text/javascript", "text/css"]
    assert sum(len(each.content) for each in answers) <= 60_000
    icon = client.get(str(page.one("link", rel="icon").attributes["href"]))
    assert (icon.status_code, icon.headers["content-type"].partition(";")[0]) == (200, "image/svg+xml")
    assert client.get("/static/other.js").status_code == 404


def test_the_list_is_filtered_by_its_address(client: "TestClient[Any]") -> None:
    page = page_at(client, "/?q=system%3Dircot")
    assert "No runs" in page.one("table").text
    assert page.one("input", name="q").attributes["value"] == "system=ircot"


@each_case(("address", "status"), [("/nothing", 404), ("/?after=nothing", 404), ("/?q=sistem%3D1", 422)])
def test_people_get_errors_as_pages_and_programs_as_problems(
    client: "TestClient[Any]", address: str, status: int
) -> None:
    problem = client.get(address).json()
    page = page_at(client, address, status)
    assert problem["status"] == status
    assert problem["detail"] in page.one("main").text


def test_what_mail_programs_add_to_an_address_does_not_matter(client: "TestClient[Any]") -> None:
    assert client.get("/?utm_source=mail&q=", headers=BROWSER).status_code == 200


def test_whoever_is_not_signed_in_is_asked_to(tmp_path: Path, cotrail: Cotrail) -> None:
    with service(here=False, url="https://cotrail.example.org") as elsewhere:
        answer = elsewhere.get("/?q=x", headers=BROWSER)
        assert answer.status_code == 401
        page = read_page(answer.text)
        assert page.one("input", name="next").attributes["value"] == "/?q=x"
        assert not page.all("nav")


def test_pages_offer_what_a_token_allows_and_do_nothing_else(client: "TestClient[Any]") -> None:
    made = client.post("/v1/tokens", json={"name": "reader", "scopes": ["read"]}).json()
    asked = client.get("/", headers=BROWSER | bearer(made["secret"]))
    assert asked.status_code == 200
    assert "reader" in read_page(asked.text).one("header", class_="bar").text
