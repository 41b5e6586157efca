"""People sign in by an OpenID Connect provider, with a browser."""

import logging
import time
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx
import pytest
from joserfc.jwk import RSAKey
from litestar.testing import TestClient

from cotrail.api.probes import _without_query
from cotrail.configuration.files import read_sign_in
from cotrail.configuration.settings import settings
from cotrail.errors import InputError
from cotrail.models.schema.service_tables import tokens as tokens_table
from cotrail.services.access import sign_in, tokens
from cotrail.services.actor import Scope
from tests.cases import each_case
from tests.integration.asked_service import bearer, service
from tests.integration.conftest import Cotrail, Query
from tests.integration.sign_in_provider import CLIENT, SECRET, Provider, providing

HOST = "cotrail.example.org"
SITE = f"https://{HOST}"
OWN_PAGE = {"Origin": SITE, "Sec-Fetch-Site": "same-origin"}
SESSION, FLOW = "__Host-cotrail_session", "__Host-cotrail_sign_in"

CONFIGURED = f"""
[sign_in]
issuer = "ISSUER"
client_id = "{CLIENT}"
secret_variable = "OIDC_SECRET"
rules = [
    {{email = "Ada@example.org", project = "ours", scope = "submit"}},
    {{claim = "groups", value = "operators", project = "ours", scope = "operate"}},
    {{domain = "example.org", project = "ours", scope = "read"}},
]
"""

Browser = TestClient[Any]


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    with providing() as provider:
        yield provider


@pytest.fixture
def provider(running: Provider, tmp_path: Path, cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch) -> Provider:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COTRAIL_PUBLIC_HOSTS", HOST)
    monkeypatch.setenv("OIDC_SECRET", SECRET)
    settings.cache_clear()
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "service.toml").write_text(CONFIGURED.replace("ISSUER", running.url))
    assert cotrail("project", "create", "ours").exit_code == 0
    running.claims, running.algorithm, running.key, running.issuer = {}, "RS256", None, None
    return running


@pytest.fixture
def browser(provider: Provider) -> Iterator[Browser]:
    with service(here=False, url=SITE) as client:
        client.follow_redirects = False
        yield client


def begin(browser: Browser, path: str = "/v1/runs") -> str:
    begun = browser.get("/auth/sign-in", params={"next": path})
    assert begun.status_code == 303, begun.text
    return begun.headers["Location"]


def come_back(browser: Browser, provider: Provider, **instead: str) -> httpx.Response:
    code, state = provider.authorize(begin(browser))
    return browser.get("/auth/callback", params={"code": code, "state": state} | instead)


def cookies_of(answer: httpx.Response) -> SimpleCookie:
    return SimpleCookie("\n".join(answer.headers.get_list("Set-Cookie")))


def test_a_person_signs_in_asks_and_signs_out(
    browser: Browser, provider: Provider, query: Query, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    address = begin(browser, "/v1/runs?limit=3")
    assert f"redirect_uri=https%3A%2F%2F{HOST}%2Fauth%2Fcallback" in address
    flow = browser.cookies[FLOW]
    code, state = provider.authorize(address)
    from_provider = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    back = browser.get("/auth/callback", params={"code": code, "state": state}, headers=from_provider)
    assert (back.status_code, back.headers["Location"]) == (303, "/v1/runs?limit=3")
    kept = cookies_of(back)
    attributes = {name: kept[SESSION][name] for name in ("secure", "httponly", "samesite", "path", "domain", "max-age")}
    assert attributes == {
        "secure": True, "httponly": True, "samesite": "lax", "path": "/", "domain": "", "max-age": "28800"
    }  # fmt: skip
    assert (kept[FLOW].value, FLOW in browser.cookies) == ("", False)
    secret = browser.cookies[SESSION]

    who = browser.get("/v1/whoami").json()
    assert who == {"name": "ada@example.org", "project": "ours", "scopes": ["read", "submit"], "person": True}
    [stored] = query(tokens_table.select().where(tokens_table.c.person.is_not(None)))
    assert (stored["project"], stored["created_by"]) == ("ours", "sign-in")
    assert 7.9 < (stored["expires_at"] - stored["created_at"]).total_seconds() / 3600 < 8.1

    assert browser.post("/auth/sign-out", headers={"Origin": "https://evil.example"}).status_code == 403
    assert browser.get("/v1/whoami").status_code == 200
    out = browser.post("/auth/sign-out", headers=OWN_PAGE)
    assert (out.status_code, SESSION in browser.cookies) == (204, False)
    assert browser.get("/v1/whoami").status_code == 401
    assert browser.get("/v1/whoami", headers={"Cookie": f"{SESSION}={secret}"}).status_code == 401
    # httpx2 is the service's own client, httpx the test's.
    logged = "\n".join(each.getMessage() for each in caplog.records if each.name != "httpx")
    assert "/token" in logged
    assert not any(each in logged for each in (secret, SECRET, code, flow, "an-access-token"))


PAGES = [
    (OWN_PAGE, 200),
    ({"Origin": SITE}, 200),
    ({"Sec-Fetch-Site": "same-origin"}, 200),
    ({}, 403),
    ({"Origin": "https://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": f"https://{HOST}.evil.example"}, 403),
    ({"Sec-Fetch-Site": "same-site", "Origin": "https://other.example.org"}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 403),
    ({"Origin": "https://evil.example", "Host": "evil.example"}, 403),
]


def test_what_changes_anything_by_a_cookie_comes_from_the_services_own_pages(
    browser: Browser, provider: Provider
) -> None:
    provider.claims = {"groups": ["operators"], "email": "eve@example.org"}
    assert come_back(browser, provider).status_code == 303
    cookie = f"{SESSION}={browser.cookies[SESSION]}"
    for headers, status in PAGES:
        answer = browser.post("/v1/prune", json={"runs": []}, headers={"Cookie": cookie, **headers})
        assert answer.status_code == status, (headers, answer.text)


WRONG: list[dict[str, Any]] = [
    {"nonce": "another"},
    {"nonce": None},
    {"iss": "https://another.example"},
    {"iss": None},
    {"aud": "another"},
    {"aud": "another", "azp": CLIENT},
    {"aud": [CLIENT, "another"]},
    {"aud": None},
    {"exp": int(time.time()) - 3600},
    {"exp": None},
    {"iat": int(time.time()) + 3600},
    {"sub": None},
]


def test_an_id_token_for_something_else_is_refused(browser: Browser, provider: Provider) -> None:
    for claims in WRONG:
        provider.claims = claims
        refused(come_back(browser, provider), 401, browser)


def test_an_id_token_without_an_asymmetric_signature_is_refused(browser: Browser, provider: Provider) -> None:
    for algorithm in ("none", "HS256"):
        provider.algorithm = algorithm
        refused(come_back(browser, provider), 401, browser)


def test_an_id_token_signed_by_somebody_else_is_refused(browser: Browser, provider: Provider) -> None:
    provider.key = RSAKey.generate_key(2048)
    refused(come_back(browser, provider), 401, browser)


STRANGERS: list[dict[str, Any]] = [
    {"email_verified": False},
    {"email_verified": "true"},
    {"email_verified": None},
    {"email": None},
    {"email": "ada@example.org.evil.example"},
    {"email": "ada@sub.example.org"},
    {"email": "ada@EXAMPLE.ORG@evil.example"},
    {"email": "example.org"},
    {"email": "nobody@elsewhere.example", "groups": "operators2"},
]


def test_whom_no_rule_names_is_not_let_in(browser: Browser, provider: Provider) -> None:
    for claims in STRANGERS:
        provider.claims = claims
        refused(come_back(browser, provider), 403, browser)


PEOPLE: list[tuple[dict[str, Any], str, str]] = [
    ({"email": "ADA@Example.org", "groups": ["operators"]}, "ADA@Example.org", "submit"),
    ({"email": "eve@example.org", "groups": ["staff", "operators"]}, "eve@example.org", "operate"),
    ({"email": "eve@example.org"}, "eve@example.org", "read"),
    ({"email_verified": False, "groups": "operators"}, "sub:42", "operate"),
]


def test_the_first_rule_that_names_a_person_counts(browser: Browser, provider: Provider) -> None:
    for claims, name, scope in PEOPLE:
        provider.claims = claims
        assert come_back(browser, provider).status_code == 303
        who = browser.get("/v1/whoami").json()
        assert (who["name"], who["scopes"][-1], who["project"]) == (name, scope, "ours")


def test_a_sign_in_ends_once_where_it_began(
    browser: Browser, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(come_back(browser, provider, state="another"), 401, browser)
    refused(come_back(browser, provider, code="another"), 401, browser)
    code, state = provider.authorize(begin(browser))
    way_back, flow = {"code": code, "state": state}, browser.cookies[FLOW]
    other = service(here=False, url=SITE)
    refused(other.get("/auth/callback", params=way_back), 401, other)
    for forged in ("x", "a.b.c.d.e", flow[:-2], ""):
        answer = other.get("/auth/callback", params=way_back, headers={"Cookie": f"{FLOW}={forged}"})
        refused(answer, 401, other)
    refused(browser.get("/auth/callback", params={"error": "access_denied", "state": state}), 401, browser)
    end = time.time() + sign_in.FLOW_SECONDS
    with monkeypatch.context() as later:
        later.setattr(time, "time", lambda: end + 1)
        late = browser.get("/auth/callback", params=way_back, headers={"Cookie": f"{FLOW}={flow}"})
    refused(late, 401, browser)
    another_process = service(here=False, url=SITE)
    answer = another_process.get(
        "/auth/callback", params=way_back, headers={"Cookie": f"{FLOW}={flow}"}, follow_redirects=False
    )
    assert answer.status_code == 303
    assert browser.cookies[FLOW] == flow
    refused(browser.get("/auth/callback", params=way_back), 401, browser)


ELSEWHERE = [
    "https://evil.example",
    "//evil.example",
    "/\\evil.example",
    "/\t/evil.example",
    "/\n",
    "evil",
    "",
    "/" * 1001,
]


def test_nobody_is_sent_to_another_host(browser: Browser) -> None:
    for path in ELSEWHERE:
        answer = browser.get("/auth/sign-in", params={"next": path})
        assert (answer.status_code, FLOW in browser.cookies) == (422, False)


def test_the_provider_sends_people_back_to_names_of_the_service_alone(browser: Browser, provider: Provider) -> None:
    assert browser.get("/auth/sign-in", headers={"Host": "evil.example"}).status_code == 403
    with service() as here:
        begun = here.get("/auth/sign-in", follow_redirects=False)
    assert "redirect_uri=http%3A%2F%2F127.0.0.1%3A8420%2Fauth%2Fcallback" in begun.headers["Location"]
    assert "Secure" not in begun.headers["Set-Cookie"]
    assert begun.headers["Set-Cookie"].startswith("cotrail_sign_in=")


def test_a_provider_that_says_it_is_another_is_not_asked_further(browser: Browser, provider: Provider) -> None:
    provider.issuer = "http://another.example"
    assert browser.get("/auth/sign-in").status_code == 503


def test_without_a_cookie_signing_out_changes_nothing(browser: Browser) -> None:
    out = browser.post("/auth/sign-out", headers={"Origin": "https://evil.example"})
    assert "Set-Cookie" not in out.headers


def test_programs_and_the_machine_itself_hear_who_they_are(provider: Provider) -> None:
    made = tokens.make_token("ci", [Scope.READ], project="ours")
    with service() as here, service(here=False, url=SITE) as away:
        local = here.get("/v1/whoami").json()
        program = away.get("/v1/whoami", headers=bearer(made.secret)).json()
        assert away.get("/v1/whoami").status_code == 401
    assert (local["name"], local["project"], len(local["scopes"]), local["person"]) == ("local", None, 4, False)
    assert program == {"name": "ci", "project": "ours", "scopes": ["read"], "person": False}


def test_where_nothing_is_configured_nobody_signs_in(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OIDC_SECRET")
    with pytest.raises(InputError, match="OIDC_SECRET"):
        sign_in.configured()
    (tmp_path / "home" / "service.toml").unlink()
    with service(here=False, url=SITE) as client:
        assert client.get("/auth/sign-in").status_code == 404


@each_case(
    ("written", "said"),
    [
        (("http://127.0.0.1", "http://login.example.org"), "TLS"),
        (("http://", "http://u:p@"), "https://host/path"),
        (('email = "Ada@example.org"', 'email = "a@b", domain = "b"'), "a rule names people"),
        (('value = "operators", ', ""), "a rule names people"),
        (('scope = "read"', 'scope = "all"'), "scope"),
        (('"OIDC_SECRET"', '"the secret"'), "secret_variable"),
    ],
)
def test_a_configuration_that_lets_in_wrongly_is_refused(
    running: Provider, tmp_path: Path, written: tuple[str, str], said: str
) -> None:
    file = tmp_path / "service.toml"
    good = CONFIGURED.replace("ISSUER", running.url)
    assert written[0] in good
    file.write_text(good.replace(*written, 1))
    with pytest.raises(InputError, match=said):
        read_sign_in(file)


def test_no_query_is_in_a_log_of_requests() -> None:
    assert _without_query("/auth/callback?code=x&state=y") == "/auth/callback"
    assert _without_query("/v1/runs/latest?access_token=secret") == "/v1/runs/latest"


def refused(answer: httpx.Response, status: int, browser: Browser) -> None:
    assert answer.status_code == status, answer.text
    assert SESSION not in cookies_of(answer)
    assert SESSION not in browser.cookies
    assert SECRET not in answer.text
