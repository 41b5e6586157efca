"""Who may ask the service for what: tokens, the machine itself, pages of other sites, projects and quotas."""

import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient
from sqlalchemy import select, update

from cotrail.api.probes import name_requests
from cotrail.configuration.settings import settings
from cotrail.models.schema.service_tables import tokens
from cotrail.models.schema.tables import runs
from cotrail.services.access import tokens as access_tokens
from cotrail.services.access.projects import without_places
from cotrail.services.access.tokens import REMEMBERED_SECONDS
from cotrail.services.actor import ALL_SCOPES, ANYBODY, Actor, acting
from tests.cases import each_case
from tests.integration.asked_service import bearer, service, upload, write_home
from tests.integration.conftest import Cotrail, Query

Client = TestClient[Any]


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    access_tokens._remembered.forget()
    yield
    access_tokens._remembered.forget()


@pytest.fixture
def request_(tmp_path: Path, cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    return write_home(tmp_path / "home")


@pytest.fixture
def here(request_: Any) -> Iterator[Client]:
    """A client on the service's machine, which needs no token."""
    with service() as client:
        yield client


@pytest.fixture
def away(request_: Any) -> Iterator[Client]:
    """A client elsewhere."""
    with service(here=False, url="https://cotrail.example.org") as client:
        yield client


def make_token(here: Client, *scopes: str, project: str = "default", **further: Any) -> dict[str, Any]:
    made = here.post("/v1/tokens", json={"name": "a test", "scopes": scopes, "project": project, **further})
    assert made.status_code == 201, made.text
    return dict(made.json())


def test_without_a_token_everything_is_closed_except_to_the_machine_itself(here: Client, away: Client) -> None:
    assert here.get("/v1/runs").status_code == 200
    answer = away.get("/v1/runs")
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert answer.json()["request_id"] == answer.headers["X-Request-Id"]
    assert away.get("/v1/openapi/openapi.json").status_code == 200
    nowhere = away.get("/v1/nowhere")
    assert (nowhere.status_code, nowhere.json()["request_id"]) == (404, nowhere.headers["X-Request-Id"])


@each_case("name", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"])
def test_what_a_proxy_passes_on_is_not_from_the_machine_itself(here: Client, name: str) -> None:
    assert here.get("/v1/runs", headers={name: "203.0.113.7"}).status_code == 401


@pytest.mark.parametrize("variable", [("COTRAIL_TOKENS_REQUIRED", "true"), ("COTRAIL_API_HOST", "0.0.0.0")])
def test_the_machine_itself_needs_a_token_too_where_it_is_said_or_others_reach_the_server(
    here: Client, variable: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = make_token(here, "read")["secret"]
    monkeypatch.setenv(*variable)
    settings.cache_clear()
    assert here.get("/v1/runs").status_code == 401
    assert here.get("/v1/runs", headers=bearer(secret)).status_code == 200


@each_case(
    ("method", "headers", "status"),
    [
        ("GET", {"Host": "evil.example"}, 401),
        ("GET", {"Host": "127.0.0.1.evil.example"}, 401),
        ("GET", {"Host": "localhost:8420"}, 200),
        ("GET", {"Host": "[::1]:8420"}, 200),
        ("GET", {"Origin": "http://evil.example"}, 403),
        ("GET", {"Origin": "null"}, 403),
        ("GET", {"Origin": "http://127.0.0.1:3000"}, 403),
        ("GET", {"Origin": "http://127.0.0.1:8420"}, 200),
        ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403),
        ("GET", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}, 403),
        ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403),
        ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200),
        ("GET", {"Sec-Fetch-Site": "same-origin"}, 200),
        ("POST", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 403),
        ("POST", {"Origin": "http://evil.example", "Content-Type": "text/plain"}, 403),
        ("OPTIONS", {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}, 403),
    ],
)
def test_pages_of_other_sites_are_refused_on_the_machine_itself(
    here: Client, method: str, headers: dict[str, str], status: int
) -> None:
    answer = here.request(method, "/v1/runs", headers=headers)
    assert answer.status_code == status, answer.text
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_unknown_expired_revoked_and_malformed_tokens_are_answered_alike(
    here: Client, away: Client, query: Query
) -> None:
    expired, revoked, valid = (make_token(here, "read", days=1) for _ in range(3))
    of_expired = update(tokens).where(tokens.c.id == expired["id"])
    query(of_expired.values(expires_at=tokens.c.created_at).returning(tokens.c.id))
    assert here.delete(f"/v1/tokens/{revoked['id']}").status_code == 200
    forged = f"cotrail_{valid['id']}_{'x' * 43}"
    unknown = f"cotrail_{'0' * 12}_{'x' * 43}"
    given = (expired["secret"], revoked["secret"], forged, unknown, "x", "", "cotrail__")
    answers = [away.get("/v1/runs", headers=bearer(each)) for each in given]
    assert {each.status_code for each in answers} == {401}
    assert len({each.json()["detail"] for each in answers}) == 1
    assert away.get("/v1/runs", headers=bearer(valid["secret"])).status_code == 200
    assert away.get("/v1/runs", headers={"Authorization": "Basic eDp5"}).status_code == 401


@each_case("path", ["/v1/runs", "/v1/whoami", "/v1/tokens", "/"])
@each_case("given", ["Bearer unused", "Bearer ", "bearer sk-x", "Bearer cotrail__", "Basic eDp5", "unused"])
def test_a_wrong_credential_is_refused_on_the_machine_itself_too(here: Client, path: str, given: str) -> None:
    """It never stands for the account that runs the server, which may do everything."""
    assert here.get(path, headers={"Authorization": given}).status_code == 401
    assert here.get(path).status_code < 400


def test_openai_s_routes_take_any_key_where_no_token_is_needed(
    here: Client, away: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their clients always send one; but a token that isn't valid is none that they made up."""
    assert here.get("/v1/models", headers=bearer("unused")).status_code == 200
    assert here.get("/v1/models", headers=bearer("cotrail__")).status_code == 401
    assert here.get("/v1/models", headers=bearer("unused") | {"Via": "a proxy"}).status_code == 401
    assert away.get("/v1/models", headers=bearer("unused")).status_code == 401
    monkeypatch.setenv("COTRAIL_TOKENS_REQUIRED", "true")
    settings.cache_clear()
    assert here.get("/v1/models", headers=bearer("unused")).status_code == 401


def test_a_secret_is_shown_once_and_stored_nowhere(
    here: Client, away: Client, query: Query, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    made = make_token(here, "read")
    away.get("/v1/runs", headers=bearer(made["secret"]))
    [row] = query(select(tokens))
    listed = here.get("/v1/tokens")
    assert made["secret"].startswith(f"cotrail_{made['id']}_")
    random = made["secret"].rpartition("_")[2]
    assert random not in f"{row}{listed.text}{caplog.text}"
    assert row["used_at"] is not None
    assert listed.json()[0]["used_at"] is not None


def test_a_revoked_token_is_forgotten_at_once_by_this_process_and_soon_by_others(
    here: Client, away: Client, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_token(here, "read")
    headers = bearer(made["secret"])
    assert away.get("/v1/runs", headers=headers).status_code == 200
    query(update(tokens).values(revoked_at=tokens.c.created_at).returning(tokens.c.id))  # by another process
    assert away.get("/v1/runs", headers=headers).status_code == 200
    now = time.monotonic()
    monkeypatch.setattr("cotrail.services.access.tokens.time.monotonic", lambda: now + REMEMBERED_SECONDS)
    assert away.get("/v1/runs", headers=headers).status_code == 401


def test_each_scope_includes_those_before_it(here: Client, away: Client) -> None:
    for place, scope in enumerate(("read", "submit", "operate", "admin")):
        headers = bearer(make_token(here, scope)["secret"])
        allowed = [
            away.get("/v1/runs", headers=headers).status_code == 200,
            away.post("/v1/runs/estimate", headers=headers, json={}).status_code != 403,
            away.post("/v1/runs/x/pause", headers=headers).status_code == 404,
            away.get("/v1/tokens", headers=headers).status_code == 200,
        ]
        assert allowed == [number <= place for number in range(4)], scope


def test_who_may_submit_may_cancel_what_that_token_began(here: Client, request_: Any, tmp_path: Path) -> None:
    ours, others = (bearer(make_token(here, "submit")["secret"]) for _ in range(2))
    upload(here, tmp_path / "home", ours)
    begun = here.post("/v1/runs", json=request_, headers=ours).json()["runs"][0]["run"]
    assert here.patch(f"/v1/runs/{begun}/labels", json={"name": "n"}, headers=others).status_code == 200
    for refused in (f"/v1/runs/{begun}/pause", "/v1/runs/latest/cancel", "/v1/jobs/nothing/cancel"):
        assert here.post(refused, headers=ours).status_code == 403, refused
    assert here.post(f"/v1/runs/{begun}/cancel", headers=others).status_code == 403
    assert here.post(f"/v1/runs/{begun}/cancel", headers=ours).json()["done"] == "cancel"
    asked = {"model": "direct::scripted", "input": "Who?", "background": True}
    response = here.post("/v1/responses", json=asked, headers=ours).json()["id"]
    assert here.post(f"/v1/responses/{response}/cancel", headers=others).status_code == 403
    assert here.post(f"/v1/responses/{response}/cancel", headers=ours).json()["status"] == "cancelled"


def test_other_projects_see_no_places_of_the_service(here: Client, tmp_path: Path) -> None:
    with (tmp_path / "home" / "models.toml").open("a") as table:
        table.write(PRICED)
    granted = {"name": "team", "models": ["scripted", "priced"]}
    assert here.post("/v1/projects", json=granted).status_code == 201
    team = bearer(make_token(here, "read", project="team")["secret"])
    for path in ("language-models", "language-models/scripted", "language-models/priced", "corpora", "workers"):
        seen, whole = here.get(f"/v1/{path}", headers=team).text, here.get(f"/v1/{path}").text
        assert [each for each in (str(tmp_path), "127.0.0.1", socket.gethostname()) if each in seen] == [], seen
        assert path in ("corpora", "workers") or str(tmp_path) in whole or "127.0.0.1" in whole


@each_case(
    ("message", "seen"),
    [
        ('failed: socket "/home/a/run/.s.PGSQL.5432" is away', "failed: socket ... is away"),
        ('server at "db.internal" (10.0.0.7), port 5432 failed', "server at ..., port 5432 failed"),
        ("/home/a/models.toml, line 3: bad", "..., line 3: bad"),
        ("http://10.0.0.1:9/v1 refuses", "... refuses"),
        ("PUT /v1/files/sha256:x?name=NAME and/or q.jsonl", "PUT /v1/files/sha256:x?name=NAME and/or q.jsonl"),
    ],
)
def test_messages_have_no_places_of_the_service(message: str, seen: str) -> None:
    for foreign in (ANYBODY, Actor(name="a", project="team", scopes=ALL_SCOPES)):
        with acting(foreign):
            assert without_places(message) == seen
    assert without_places(message) == message


def test_the_access_log_has_no_queries() -> None:
    kept = logging.getLogRecordFactory()
    try:
        name_requests()
        made = logging.getLogger("uvicorn.access").makeRecord(
            "uvicorn.access", logging.INFO, "", 0, "%s %s", ("127.0.0.1:1", "/v1/runs?access_token=secret"), None
        )
    finally:
        logging.setLogRecordFactory(kept)
    assert made.args == ("127.0.0.1:1", "/v1/runs")


PRICED = """
[models.priced]
engine = "openai"
api = "chat"
url = "http://127.0.0.1:9/v1"
model = "m"
context = 4096
revision = "1"
price = { input = 1, output = 2 }
"""


def test_the_money_of_one_question_is_set_aside_of_a_projects(here: Client, tmp_path: Path, query: Query) -> None:
    with (tmp_path / "home" / "models.toml").open("a") as table:
        table.write(PRICED)
    here.patch("/v1/projects/default", json={"money": 2.5})
    question = {"question": "Who?", "system": "direct", "model": "priced"}
    refused = here.post("/v1/ask/background", json=question)
    assert "`question_budget`" in refused.json()["detail"], refused.text
    budgeted = question | {"question_budget": {"money": 1.0}}
    assert here.post("/v1/ask/background", json=budgeted).status_code == 202
    over_openai = {"model": "direct::priced", "input": "Who?", "background": True}
    assert here.post("/v1/responses", json=over_openai).json()["status"] == "queued"
    assert here.post("/v1/responses", json=over_openai).status_code == 429
    assert {each["provenance"]["budgets"]["question"]["money"] for each in query(select(runs))} == {1.0}


def test_too_many_requests_are_refused_with_the_time_to_wait(
    here: Client, away: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers, other = (bearer(make_token(here, "read")["secret"]) for _ in range(2))
    monkeypatch.setenv("COTRAIL_REQUESTS_PER_MINUTE", "2")
    settings.cache_clear()
    answers = [away.get("/v1/runs", headers=headers) for _ in range(3)]
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert 1 <= int(answers[2].headers["Retry-After"]) <= 61
    assert away.get("/v1/runs", headers=other).status_code == 200


def test_a_projects_runs_are_its_own_and_the_machine_itself_sees_all(
    here: Client, away: Client, request_: dict[str, Any], query: Query, tmp_path: Path
) -> None:
    for name in ("ours", "theirs"):
        assert here.post("/v1/projects", json={"name": name, "models": ["scripted"]}).status_code == 201
    ours, theirs = (bearer(make_token(here, "operate", project=name)["secret"]) for name in ("ours", "theirs"))
    upload(away, tmp_path / "home", ours)
    made = away.post("/v1/runs", headers=ours, json=request_ | {"name": "mine"})
    assert made.status_code == 201, made.text
    run = made.json()["runs"][0]["run"]
    assert [row["project"] for row in query(select(runs))] == ["ours"]
    for name in (run, run[:-2], "mine", "latest"):
        assert away.get(f"/v1/runs/{name}", headers=ours).status_code == 200
        assert away.get(f"/v1/runs/{name}", headers=theirs).status_code == 404
    assert away.get("/v1/runs", headers=theirs).json() == {"runs": [], "more": 0}
    assert [each["run"] for each in here.get("/v1/runs").json()["runs"]] == [run]
    assert here.get("/v1/runs", headers={"Cotrail-Project": "theirs"}).json()["runs"] == []
    assert here.get("/v1/runs", headers={"Cotrail-Project": "nobodys"}).status_code == 404
    assert away.get("/v1/runs", headers=ours | {"Cotrail-Project": "theirs"}).status_code == 404


def test_runs_of_another_project_share_no_questions_with_ones_own(
    here: Client, away: Client, request_: dict[str, Any], tmp_path: Path
) -> None:
    own = {}
    for name in ("ours", "theirs"):
        assert here.post("/v1/projects", json={"name": name, "models": ["scripted"]}).status_code == 201
        headers = bearer(make_token(here, "submit", project=name)["secret"])
        upload(away, tmp_path / "home", headers)
        own[name] = headers, away.post("/v1/runs", headers=headers, json=request_).json()["runs"][0]["run"]

    def sharing(project: str, run: str) -> list[str]:
        answer = away.get("/v1/runs", headers=own[project][0], params={"filters": f"shares={run}"})
        assert answer.status_code == 200, answer.text
        return [each["run"] for each in answer.json()["runs"]]

    for project, other in (("ours", "theirs"), ("theirs", "ours")):
        assert sharing(project, own[project][1]) == [own[project][1]]
        assert sharing(project, own[other][1]) == sharing(project, "nothing-20260101-000000") == []


def test_a_model_that_is_not_granted_is_unknown_and_only_granted_ones_are_named(
    here: Client, away: Client, request_: dict[str, Any], tmp_path: Path
) -> None:
    here.post("/v1/projects", json={"name": "ours", "models": ["other"]})
    ours = bearer(make_token(here, "submit", project="ours")["secret"])
    upload(away, tmp_path / "home", ours)
    refused = away.post("/v1/runs", headers=ours, json=request_)
    missing = away.post("/v1/runs", headers=ours, json=request_ | {"model": "scripter"})
    assert (refused.status_code, missing.status_code) == (404, 404)
    assert refused.json()["detail"].replace("scripted", "X") == missing.json()["detail"].replace("scripter", "X")
    assert "other" in refused.json()["detail"]
    assert "smollm" not in refused.text
    assert away.post("/v1/runs", headers=ours, json=request_ | {"model": "other"}).status_code == 201
    assert here.patch("/v1/projects/ours", json={"models": None}).json()["models"] is None
    assert away.post("/v1/runs", headers=ours, json=request_).status_code == 201


def test_only_administrators_of_the_default_project_reach_beyond_their_own(here: Client, away: Client) -> None:
    for name in ("ours", "theirs"):
        here.post("/v1/projects", json={"name": name})
    other = make_token(here, "read", project="theirs")
    ours = bearer(make_token(here, "admin", project="ours")["secret"])
    assert [each["project"] for each in away.get("/v1/tokens", headers=ours).json()] == ["ours"]
    assert [each["name"] for each in away.get("/v1/projects", headers=ours).json()] == ["ours"]
    foreign, none = (away.delete(f"/v1/tokens/{each}", headers=ours) for each in (other["id"], "0" * 12))
    assert (foreign.status_code, none.status_code) == (404, 404)
    wanted = {"name": "x", "scopes": ["read"]}
    for project, status in (("ours", 201), (None, 201), ("theirs", 404), ("nobodys", 404)):
        asked = away.post("/v1/tokens", headers=ours, json=wanted | {"project": project})
        assert asked.status_code == status
    for project in ("ours", "theirs", "nobodys"):
        changed = away.patch(f"/v1/projects/{project}", headers=ours, json={"open_questions": None})
        assert changed.status_code == 403
    all_ = bearer(make_token(here, "admin")["secret"])
    assert away.patch("/v1/projects/ours", headers=all_, json={"open_questions": 3}).json()["open_questions"] == 3
    assert away.delete(f"/v1/tokens/{other['id']}", headers=all_).status_code == 200


def test_the_command_line_makes_lists_and_revokes(cotrail: Cotrail) -> None:
    assert cotrail("project", "create", "ours", "--corpus", "all", "--open-questions", "5").exit_code == 0
    assert cotrail("project", "set", "ours", "--money", "2.5").exit_code == 0
    assert cotrail("project", "set", "ours", "--stored-bytes", str(2**20)).exit_code == 0
    listed = cotrail("project", "list").stdout
    assert "$2.50" in listed
    assert "1.0 MiB" in listed
    made = cotrail(
        "token", "create", "ci", "--project", "ours", "--scope", "read", "--scope", "submit", "--expires", "90d"
    )
    assert made.exit_code == 0, made.output
    secret = made.stdout.strip().splitlines()[0]
    token_id = secret.split("_")[1]
    assert token_id in cotrail("token", "list").stdout
    assert cotrail("token", "revoke", token_id).exit_code == 0
    assert "revoked" in cotrail("token", "list").stdout


def test_who_asked_to_change_what_is_recorded_and_its_administrators_see_it(
    request_: dict[str, Any], tmp_path: Path
) -> None:
    with service() as here:
        here.post("/v1/projects", json={"name": "ours", "models": None})
        made = make_token(here, "submit", project="ours")
        headers = bearer(made["secret"])
        upload(here, tmp_path / "home", headers)
        run = here.post("/v1/runs", json=request_, headers=headers)
        refused = here.post("/v1/runs/some-run/cancel", headers=headers)
        here.get("/v1/runs", headers=headers)
    with service() as here:  # the last ones were stored as the service ended
        admin = bearer(make_token(here, "admin", project="ours")["secret"])
        own = here.get("/v1/activities", headers=admin).json()
        every = here.get("/v1/activities").json()
    assert [(each["operation"], each["subject"], each["status"], each["request_id"]) for each in own[:2]] == [
        ("runs.cancel", "some-run", 403, refused.headers["X-Request-Id"]),
        ("runs.submit", run.json()["runs"][0]["run"], 201, run.headers["X-Request-Id"]),
    ]
    assert {(each["project"], each["actor"], each["token_id"]) for each in own} == {("ours", "a test", made["id"])}
    assert [(each["operation"], each["subject"], each["actor"]) for each in every[-2:]] == [
        ("tokens.create", made["id"], "local"),
        ("projects.create", "ours", "local"),
    ]
    assert made["secret"] not in f"{own}{every}"
