"""The service over HTTP on a store with recorded runs: schemathesis, what a client may keep, and names in paths."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import schemathesis
from hypothesis import HealthCheck, given
from hypothesis import seed as seeded
from hypothesis import settings as cases
from litestar.testing import TestClient
from schemathesis import Case
from schemathesis.config import SchemathesisConfig
from schemathesis.schemas import BaseSchema
from sqlalchemy import Engine

from cotrail.api.app import Service, application
from cotrail.configuration.settings import Settings, settings
from tests.integration import recorded
from tests.integration.asked_service import HERE, FromHere
from tests.integration.conftest import empty

PATHS = {"run": [recorded.PLAIN, recorded.OPEN, recorded.CANCELLED, "latest"]}
"""What stands in the paths of some cases, so that they reach more than an unknown name."""

CASES = 12
"""The cases of each operation; with 1,000 it takes minutes."""

COUNT = cases(max_examples=CASES, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@pytest.fixture
def service(engine: Engine, database: str, servers: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """The service on a store with the runs of `recorded`."""
    recorded.record(engine)
    monkeypatch.setenv("COTRAIL_DATABASE_URL", database.replace("+psycopg", ""))
    monkeypatch.setenv("COTRAIL_BROKER_URL", servers.broker)
    settings.cache_clear()
    yield application()
    empty(engine)


@pytest.fixture
def client(service: Service) -> Iterator[TestClient[Any]]:
    with TestClient(FromHere(service), base_url=HERE) as client:
        yield client


@pytest.fixture
def schema(service: Service) -> BaseSchema:
    # What a schema can't say: which files, models and corpora there are.
    config = SchemathesisConfig.from_dict({"checks": {"positive_data_acceptance": {"enabled": False}}})
    described = schemathesis.openapi.from_asgi("/v1/openapi/openapi.json", FromHere(service), config=config)
    described.config.update(base_url=HERE)
    return described


def test_every_operation_answers_as_it_is_described(schema: BaseSchema) -> None:
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]

        @given(case=operation.as_strategy())
        @seeded(34)
        @COUNT
        def answers_as_described(case: Case[Any]) -> None:
            _reach(case)
            assert case.call_and_validate().status_code != 401

        answers_as_described()


def test_operations_one_after_another_answer_as_they_are_described(schema: BaseSchema) -> None:
    schema.as_state_machine().run(settings=cases(COUNT, stateful_step_count=6))


@pytest.mark.parametrize("path", ["/v1/runs/{run}/events", "/v1/runs/{run}/questions/{question}/events"])
def test_streams_tell_what_is_described(schema: BaseSchema, path: str) -> None:
    operation: Any = schema[path]["GET"]
    case = operation.Case(path_parameters={"run": recorded.PLAIN, "question": "1"})
    answer = case.call_and_validate()
    assert answer.status_code == 200
    assert b"event: step" in answer.content


def test_an_answer_that_a_client_has_is_not_sent_again(client: TestClient[Any]) -> None:
    first = client.get("/v1/runs/plain")
    assert first.headers["etag"].startswith('W/"')
    again = client.get("/v1/runs/plain", headers={"If-None-Match": f'"other", {first.headers["etag"]}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    head = client.head("/v1/runs/plain")
    assert (head.content, head.headers["content-length"]) == (b"", str(len(first.content)))
    assert client.patch("/v1/runs/plain/labels", json={"name": "baseline"}).status_code == 200
    changed = client.get("/v1/runs/plain", headers={"If-None-Match": first.headers["etag"]})
    assert (changed.status_code, changed.json()["name"]) == (200, "baseline")


def test_names_in_paths_may_hold_any_character(client: TestClient[Any]) -> None:
    for name in ("a b", "50%", "naïve 💥", "a%2Fb", "a/b"):
        assert client.patch("/v1/runs/plain/labels", json={"name": name}).status_code == 200, name
        assert client.get(f"/v1/runs/{quote(name, safe='')}").json()["name"] == name


def test_pages_of_a_list_lead_to_one_another(client: TestClient[Any]) -> None:
    seen: list[str] = []
    path = "/v1/runs?limit=2&filters=system=ircot"
    while path:
        answer = client.get(path)
        seen += [run["run"] for run in answer.json()["runs"]]
        path = answer.links.get("next", {}).get("url", "")
    assert seen == [run["run"] for run in client.get("/v1/runs?filters=system=ircot").json()["runs"]]
    assert len(seen) > 2


def _reach(case: Case[Any]) -> None:
    """Have half of the cases name what there is."""
    for name, value in case.path_parameters.items():
        number = sum(map(ord, str(value)))
        if name in PATHS and number % 2:
            case.path_parameters[name] = PATHS[name][number // 2 % len(PATHS[name])]
