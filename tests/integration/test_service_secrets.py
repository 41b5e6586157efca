"""All routes of the service are asked among planted secrets, and what it asks itself fails: nothing tells a secret."""

import hashlib
import json
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from msgspec import Struct

from cotrail.audit.bundles import read_bundle
from cotrail.workers.stack.stack import Stack
from tests.conftest import wait_until
from tests.faults.stacked import COTRAIL, ROOT, environment_of
from tests.integration.planted import World, forms, found, planted

DESCRIPTION = json.loads((ROOT / "docs" / "openapi.json").read_text())

STREAMS = "text/event-stream"
FAILING: tuple[dict[str, Any], ...] = (
    {"model": "served", "system": "zero-shot", "task": "commonsense"},
    {"model": "scripted", "system": "one-step", "corpus": "planted"},
)
"""What is asked for by runs whose servers refuse it."""


class Service(Struct):
    """The service of a stack, as an administrator asks it; told: each of its answers, by what was asked."""

    world: World
    client: httpx2.Client
    token: str
    told: list[tuple[str, bytes]]

    def ask(self, method: str, path: str, **sent: Any) -> httpx2.Response:
        answer = self.client.request(method, path, **sent)
        headers = "\n".join(f"{name}: {value}" for name, value in answer.headers.multi_items())
        self.told.append((f"{method} {path} {sent}", headers.encode() + answer.content))
        return answer

    def leaks(self, content: bytes) -> set[bytes]:
        """The secrets in it: those that were planted, and the token's."""
        return found(content) | {form for form in forms(self.token) if form in content}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with planted() as world:
        address = Stack(world.servers).address
        assert address is not None
        token = _token(world)
        with httpx2.Client(base_url=address.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
            yield Service(world, client, token, [])


def _token(world: World) -> str:
    """The secret of a new token, which is told this once."""
    command = [*COTRAIL, "token", "create", "ours", "--scope", "admin", "--json"]
    done = subprocess.run(command, env=environment_of(world.home, world.variables), cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["secret"])


@pytest.fixture(scope="module")
def runs(service: Service) -> list[str]:
    """Runs that are blocked, as servers refused them and said again what they were sent."""
    content = (service.world.home / "questions.jsonl").read_bytes()
    file = f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert service.ask("PUT", f"/v1/files/{file}?name=questions.jsonl", content=content).status_code < 300
    made = []
    for failing in FAILING:
        run = service.ask("POST", "/v1/runs", json={"dataset": "jsonl", "questions": file, **failing})
        assert run.status_code == 201, run.text
        made.append(run.json()["runs"][0]["run"])
        wait_until(partial(service.world.ended, made[-1]), "its question is blocked")
    return made


@pytest.fixture(scope="module")
def told(service: Service, runs: list[str]) -> list[tuple[str, bytes]]:
    """All answers: of every route about what there is and what there isn't, then without a body and with bad ones."""
    for path in _paths("get"):
        for place in _places(path, runs):
            service.ask("GET", place)
            service.ask("GET", place, params={"limit": "many", "form": "jsonl"})
    for method in ("post", "put", "patch", "delete"):
        for path in _paths(method):
            for place in _places(path, runs):
                for body in ("{}", "{", '{"request": {"model": "served", "unknown": 1}}'):
                    service.ask(method.upper(), place, content=body, headers={"Content-Type": "application/json"})
    service.ask("POST", f"/v1/runs/{runs[0]}/cancel")
    service.ask("GET", f"/v1/runs/{runs[0]}/events")
    service.ask("GET", "/v1/runs", headers={"Authorization": f"Bearer {service.token[:-1]}"})
    return service.told


def _paths(method: str) -> list[str]:
    """The paths of the routes of this method that don't answer by a stream, which may have no end."""
    described = {path: methods[method] for path, methods in DESCRIPTION["paths"].items() if method in methods}
    return [path for path, route in described.items() if STREAMS not in json.dumps(route["responses"])]


def _places(path: str, runs: list[str]) -> list[str]:
    """The path for each of the runs, and for one that there isn't."""
    return sorted({_place(path, run) for run in (*runs, "nothing")})


def _place(path: str, run: str) -> str:
    named = {"run": run, "question": "q1", "step": "1", "system": "zero-shot", "model": "served", "corpus": "planted"}
    for name in [part[1:-1] for part in path.split("/") if part.startswith("{")]:
        path = path.replace(f"{{{name}}}", named.get(name, "nothing"))
    return path


def test_no_answer_tells_a_secret(service: Service, told: list[tuple[str, bytes]]) -> None:
    assert b"[secret]" in b"".join(content for _, content in told)
    assert {asked: leaked for asked, content in told if (leaked := service.leaks(content))} == {}


def test_a_bundle_holds_no_secret(service: Service, runs: list[str], tmp_path: Path) -> None:
    for run in runs:
        (tmp_path / "bundle.zst").write_bytes(service.client.get(f"/v1/runs/{run}/bundle").content)
        records = json.dumps([*read_bundle(tmp_path / "bundle.zst")], ensure_ascii=False, default=str)
        assert run in records
        assert service.leaks(records.encode()) == set()


def test_a_webhook_that_fails_leaves_no_secret(service: Service, runs: list[str]) -> None:
    def tried() -> bool:
        with service.world.connected() as connection:
            given = "SELECT 1 FROM webhook_deliveries WHERE problem IS NOT NULL"
            return connection.execute(given).fetchone() is not None

    wait_until(tried, "the endpoint was told, and refused it")
    assert service.leaks(service.world.tables()) == set()


def test_a_sign_in_that_fails_tells_nothing(service: Service) -> None:
    service.world.provider.echoes = True
    with httpx2.Client(base_url=service.client.base_url) as browser:
        begun = browser.get("/auth/sign-in")
        code, state = service.world.provider.authorize(begun.headers["Location"])
        back = browser.get("/auth/callback", params={"code": code, "state": state})
    assert back.status_code == 401, back.text
    wait_until(lambda: b"doesn't take a code" in service.world.logs(), "it is logged")
    for answer in (begun, back):
        assert service.leaks(f"{answer.headers}".encode() + answer.content) == set()


def test_the_token_is_stored_as_a_digest(service: Service, told: list[tuple[str, bytes]]) -> None:
    content = service.world.tables()
    assert hashlib.sha256(service.token.encode()).hexdigest().encode() in content
    assert service.leaks(content) == set()


def test_no_log_tells_a_secret(service: Service, told: list[tuple[str, bytes]]) -> None:
    lines = service.world.logs().splitlines()
    assert [line for line in lines if service.leaks(line)] == []
