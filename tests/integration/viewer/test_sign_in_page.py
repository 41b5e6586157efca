"""Signing in with a token in the browser: the page, the cookie, and what is refused."""

from collections.abc import Iterator
from http.cookies import SimpleCookie
from typing import Any

import pytest
from litestar.testing import TestClient

from cotrail.configuration.settings import settings
from cotrail.services.access import tokens
from cotrail.services.actor import Scope
from tests.cases import each_case
from tests.integration.asked_service import HERE, service
from tests.integration.conftest import Cotrail
from tests.integration.viewer.read_pages import BROWSER, page_at, read_page

HOST = "cotrail.example.org"
SITE = f"https://{HOST}"
OWN_PAGE = {**BROWSER, "Origin": SITE, "Sec-Fetch-Site": "same-origin"}
SESSION = "__Host-cotrail_session"

Browser = TestClient[Any]


@pytest.fixture
def secret(cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch) -> str:
    """A reader's token of a service that has a name."""
    monkeypatch.setenv("COTRAIL_PUBLIC_HOSTS", HOST)
    monkeypatch.setenv("COTRAIL_TOKENS_REQUIRED", "true")
    settings.cache_clear()
    return tokens.make_token("ada's", [Scope.READ]).secret


@pytest.fixture
def browser(secret: str) -> Iterator[Browser]:
    with service(here=False, url=SITE) as client:
        client.follow_redirects = False
        yield client


def sign_in(browser: Browser, token: str, path: str = "/", **headers: str) -> Any:
    return browser.post("/auth/token", data={"token": token, "next": path}, headers={**OWN_PAGE, **headers})


def cookies_of(answer: Any) -> "SimpleCookie":
    return SimpleCookie("\n".join(answer.headers.get_list("Set-Cookie")))


def test_whoever_has_a_token_signs_in_and_goes_where_they_wanted_to(browser: Browser, secret: str) -> None:
    form = page_at(browser, "/?q=x%26y", 401)
    assert form.one("input", name="token").attributes["type"] == "password"
    path = str(form.one("input", name="next").attributes["value"])
    answer = sign_in(browser, f" {secret}\n", path)
    assert (answer.status_code, answer.headers["location"]) == (303, "/?q=x%26y")
    kept = cookies_of(answer)[SESSION]
    assert {name: kept[name] for name in ("secure", "httponly", "samesite", "path", "domain")} == {
        "secure": True, "httponly": True, "samesite": "lax", "path": "/", "domain": ""
    }  # fmt: skip
    assert 0 < int(kept["max-age"]) <= 30 * 86_400

    page = page_at(browser, path)
    assert "ada's" in page.one("header", class_="bar").text
    assert secret not in browser.get(path, headers=BROWSER).text
    out = browser.post("/auth/sign-out", headers=OWN_PAGE)
    assert (out.status_code, SESSION in browser.cookies) == (303, False)
    page_at(browser, path, 401)


@each_case("token", ["", "nothing", "cotrail_0123456789ab_wrong", "<script>alert(1)</script>"])
def test_what_is_no_token_signs_nobody_in(browser: Browser, token: str) -> None:
    answer = sign_in(browser, token, "/ask?question=x")
    assert answer.status_code == 401
    assert SESSION not in cookies_of(answer)
    page = read_page(answer.text)
    assert page.one("p", role="alert").text
    assert page.one("input", name="token").attributes.get("value") is None
    assert page.one("input", name="next").attributes["value"] == "/ask?question=x"
    programs = browser.post("/auth/token", data={"token": token}, headers={"Origin": SITE})
    assert (programs.status_code, programs.headers["content-type"]) == (401, "application/problem+json")


def test_what_was_sent_while_signed_out_is_not_where_one_goes_afterwards(browser: Browser) -> None:
    answer = browser.post("/ask", data={"question": "Who?"}, headers=OWN_PAGE)
    assert answer.status_code == 401
    assert read_page(answer.text).one("input", name="next").attributes["value"] == "/"


def test_a_token_that_was_revoked_opens_no_page_any_more(browser: Browser, secret: str) -> None:
    assert sign_in(browser, secret).status_code == 303
    page_at(browser, "/")
    [listed] = tokens.list_tokens()
    tokens.revoke_token(listed.id)
    page_at(browser, "/", 401)
    assert sign_in(browser, secret).status_code == 401


@each_case(
    "path", ["//evil.example", "https://evil.example/", "/\\evil.example", "javascript:alert(1)", "/\r\nX: y", ""]
)
def test_nobody_is_sent_to_another_site(browser: Browser, secret: str, path: str) -> None:
    answer = sign_in(browser, secret, path)
    if path:
        assert answer.status_code == 422
        assert SESSION not in cookies_of(answer)
    else:
        assert answer.headers["location"] == "/"


@each_case(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Host": "evil.example", "Origin": "https://evil.example"},
    ],
)
def test_pages_of_other_sites_sign_nobody_in(browser: Browser, secret: str, headers: dict[str, str]) -> None:
    answer = sign_in(browser, secret, **headers)
    assert answer.status_code == 403
    assert SESSION not in cookies_of(answer)


def test_on_the_machine_itself_a_token_is_asked_for_where_tokens_are_required(secret: str) -> None:
    with service() as here:
        here.follow_redirects = False
        page_at(here, "/", 401)
        fields, own = {"token": secret, "next": "/"}, {**BROWSER, "Origin": HERE, "Sec-Fetch-Site": "same-origin"}
        answer = here.post("/auth/token", data=fields, headers=own)
        kept = cookies_of(answer)["cotrail_session"]
        assert (answer.status_code, kept["secure"], kept["httponly"], kept["samesite"]) == (303, "", True, "lax")
        page_at(here, "/")
