"""A table of the application's own routes against every scope: a new route without a rule fails, foreign ids too."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from litestar import HttpMethod
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute
from litestar.testing import TestClient
from sqlalchemy import Engine, event, func, select, update

from cotrail.api.access import PUBLIC
from cotrail.api.app import application
from cotrail.api.pages import VIEWER
from cotrail.configuration.settings import settings
from cotrail.models.schema.service_tables import jobs
from cotrail.models.schema.tables import experiments, runs, steps
from cotrail.services.actor import Scope, scopes_up_to
from tests.integration.asked_service import HERE, FromHere, bearer, upload, write_home
from tests.integration.conftest import Cotrail

SCOPES = tuple(Scope)

OF_PROJECT = {"experiment", "job", "response_id", "run", "token"}
"""The parameters in paths that name what is a project's own."""

NAMING: dict[str, dict[str, Callable[[str], Any]]] = {
    "GET /": {"after": str},
    "GET /ask": {"after": str},
    "GET /v1/runs": {"after": str},
    "GET /v1/ask": {"after": str},
    "GET /v1/comparisons": {"runs": lambda run: [run, run]},
    "GET /v1/comparisons/questions": {"first": str, "second": str},
    "GET /v1/comparisons/questions/{question}": {"first": str, "second": str},
    "GET /compare": {"run": lambda run: [run, f"{run}x"]},
    "GET /compare/questions": {"run": lambda run: [run, run]},
    "GET /compare/question": {"run": lambda run: [run, run]},
    "GET /v1/prunable": {"runs": lambda run: [run]},
    "GET /v1/standings": {"runs": lambda run: [run]},
    "POST /v1/prune": {"runs": lambda run: [run]},
    "POST /v1/runs/fork": {"run": str},
    "POST /v1/judges": {"judge": lambda run: {"run": run}},
    "POST /v1/judges/estimate": {"judge": lambda run: {"run": run}},
}
"""Routes that name what is a project's own elsewhere than in their paths."""

FURTHER: dict[str, dict[str, Any]] = {
    "GET /compare/question": {"question": "q"},
    "GET /v1/runs/{run}/export": {"form": "jsonl"},
    "PUT /v1/runs/{run}/priority": {"priority": 1},
    "POST /v1/runs/{run}/calibration": {"labels": "FILE"},
    "PUT /v1/runs/{run}/annotations": {"marks": []},
    "DELETE /v1/runs/{run}/annotations": {"question": "q", "position": 1, "annotator": "a"},
    "POST /v1/runs/{run}/annotations/rows": {"annotator": "a", "rows": {}},
    "POST /v1/runs/{run}/annotations/summary": {"annotator": "a", "questions": []},
    "POST /runs/{run}/questions/{question}/labels": {"annotator": "a", "cause": "unexplained"},
    "PUT /v1/runs/{run}/cause-labels": {"labels": []},
    "DELETE /v1/runs/{run}/cause-labels": {"question": "q", "annotator": "a"},
    "POST /v1/runs/{run}/cause-labels/rows": {"annotator": "a", "rows": {}},
    "POST /v1/runs/{run}/cause-labels/summary": {"annotator": "a", "questions": []},
}
"""What routes need beside that."""

COMPLETES = "POST /v1/prune"
"""Removes what is still there of what is named."""

SELDOM = ("tokens.digest", "SET used_at", "INSERT INTO activities")
"""Statements that are carried out every few seconds, whatever is asked for."""

SHARED = {
    "corpus",
    "dataset",
    "digest",
    "key",
    "model",
    "name",
    "number",
    "paragraph",
    "project",
    "question",
    "source",
    "step",
    "system",
    "upload",
    "view",
}
"""The others: what all have, what grants decide, and parts of what is named before."""


@cache
def routes() -> dict[str, tuple[str, str, HTTPRouteHandler]]:
    """Each route of the application by its method and path, which it has beside its handler."""
    found: dict[str, tuple[str, str, HTTPRouteHandler]] = {}
    for route in application().routes:
        assert isinstance(route, HTTPRoute)
        for handler in route.route_handlers:
            for method in sorted(handler.http_methods - {HttpMethod.OPTIONS}):
                found[f"{method} {route.path_format}"] = (method, route.path_format, handler)
    return found


def parameters(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


def test_every_route_has_a_rule() -> None:
    for name, (_, path, handler) in routes().items():
        assert ("scope" in handler.opt) != bool(handler.opt.get(PUBLIC)), f"{name} needs a scope, or is public"
        if "scope" in handler.opt:
            unknown = set(parameters(path)) - OF_PROJECT - SHARED
            assert not unknown, f"say in this table whether {unknown} of {name} are a project's own"


class World:
    """A service with two projects; theirs: ids of what the other one has, by parameter."""

    def __init__(self, client: "TestClient[Any]", engine: Engine, home: Path, request: Mapping[str, Any]) -> None:
        self.client = client
        for name in ("ours", "theirs"):
            made = client.post("/v1/projects", json={"name": name, "models": ["scripted"]})
            assert made.status_code == 201, made.text
        self.tokens = {scope: self._token("ours", scope) for scope in SCOPES}
        other = self._token("theirs", Scope.ADMIN)
        for secret in (other["secret"], self.tokens[Scope.ADMIN]["secret"]):
            upload(client, home, bearer(secret))
        self.file = request["questions"]
        run = client.post("/v1/runs", json=dict(request), headers=bearer(other["secret"]))
        assert run.status_code == 201, run.text
        id_ = run.json()["runs"][0]["run"]
        with engine.begin() as connection:
            row = {"id": "job-000001", "project": "theirs", "kind": "index", "request": {}}
            connection.execute(jobs.insert().values(row))
            experiment = {"id": "theirs/exp-000001", "project": "theirs", "plan": {}}
            connection.execute(experiments.insert().values(experiment))
            connection.execute(update(runs).where(runs.c.id == id_).values(asked=True))
            step = connection.execute(select(func.min(steps.c.id)).where(steps.c.run_id == id_)).scalar_one()
        self.theirs = {"run": id_, "token": other["id"], "job": "job-000001", "step": str(step)}
        self.theirs |= {"experiment": "exp-000001", "response_id": f"resp_{id_}"}
        self.theirs |= dict.fromkeys(("after", "runs", "judge", "first", "second"), id_)

    def _token(self, project: str, scope: Scope) -> dict[str, Any]:
        asked = {"name": scope, "scopes": [scope], "project": project}
        return dict(self.client.post("/v1/tokens", json=asked).json())

    def ask(self, method: str, path: str, ids: Mapping[str, str], scope: Scope | None) -> Any:
        place = path.format(**{name: ids.get(name, "1") for name in parameters(path)})
        # From elsewhere, as the header says.
        headers = {"Via": "a proxy"} | (bearer(self.tokens[scope]["secret"]) if scope else {})
        sent = {
            name: self.file if value == "FILE" else value for name, value in FURTHER.get(f"{method} {path}", {}).items()
        } | {name: make(ids.get(name, "1")) for name, make in NAMING.get(f"{method} {path}", {}).items()}
        form = routes()[f"{method} {path}"][2].opt.get("operation", "").startswith(f"{VIEWER}.")
        within = "data" if form else "json"
        body: dict[str, Any] = {within if method in ("POST", "PUT", "PATCH") else "params": sent}
        return self.client.request(method, place, headers=headers, **body)


@pytest.fixture
def world(tmp_path: Path, engine: Engine, cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    request = write_home(tmp_path / "home")
    with TestClient(FromHere(application()), base_url=HERE, raise_server_exceptions=False) as client:
        yield World(client, engine, tmp_path / "home", request)


def test_each_route_is_open_to_the_scopes_that_it_names_alone(world: World) -> None:
    for name, (method, path, handler) in routes().items():
        if handler.opt.get(PUBLIC):
            continue
        assert world.ask(method, path, {}, None).status_code == 401, name
        for scope in SCOPES:
            status = world.ask(method, path, {"run": "nothing", "token": "0" * 12}, scope).status_code
            if handler.opt["scope"] in scopes_up_to([scope]):
                assert status not in (401, 403) or "/projects" in path, (name, scope)
            else:
                assert status == 403, (name, scope)
            assert status < 500, (name, scope)


def test_what_is_another_projects_is_answered_like_what_is_not_there(world: World) -> None:
    statements: list[str] = []
    listener = lambda *given: statements.append(given[2])  # noqa: E731 - as SQLAlchemy calls it
    event.listen(Engine, "before_cursor_execute", listener)
    try:
        for name, (method, path, _) in routes().items():
            own = [each for each in parameters(path) if each in world.theirs] or [*NAMING.get(name, {})]
            if not own:
                continue
            answers = []
            for ids in (world.theirs, {each: absent(world.theirs[each]) for each in own}):
                statements.clear()
                answer = world.ask(method, path, ids, Scope.ADMIN)
                told = {**answer.json(), "request_id": ""} if answer.content else {}
                asked = [each for each in statements if not any(part in each for part in SELDOM)]
                answers.append((answer.status_code, str(told).replace(ids[own[0]].removeprefix("resp_"), "ID"), asked))
            assert answers[0] == answers[1], name
            assert answers[0][0] == (200 if name == COMPLETES else 404), (name, answers[0])
    finally:
        event.remove(Engine, "before_cursor_execute", listener)


def absent(id_: str) -> str:
    """An id like this one, of nothing."""
    return "9" * 9 if id_.isdigit() else id_[:-6] + uuid.uuid4().hex[:6]
