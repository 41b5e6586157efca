"""The service over HTTP, without a store: what is refused before anything is asked of it, and its description."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import schemathesis
from litestar.testing import TestClient

from cotrail.api.app import HEADERS, application
from cotrail.api.problems import BUG, PAGE, STATUSES, UNREAD
from cotrail.common.nearest import slug
from cotrail.configuration.settings import settings
from cotrail.errors import CotrailError
from cotrail.services.actor import Scope
from cotrail.services.operations.all_operations import OPERATIONS
from tests.cases import each_case
from tests.integration.asked_service import HERE, FromHere

DOCS = Path(__file__).parents[2] / "docs"
JSON = {"content-type": "application/json"}


@pytest.fixture(autouse=True)
def nothing_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTRAIL_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    monkeypatch.setenv("COTRAIL_BROKER_URL", "redis://127.0.0.1:1/0")
    settings.cache_clear()


@pytest.fixture(scope="module")
def service() -> Iterator[TestClient[Any]]:
    """The service, which reads the limit of bodies as it starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COTRAIL_API_BODY_BYTES", "2000000")
        settings.cache_clear()
        made = application()
    settings.cache_clear()
    with TestClient(FromHere(made), base_url=HERE) as client:
        yield client


BODIES: list[tuple[Any, int, str]] = [
    (b"", 400, "the body is missing"),
    (b"{", 400, "isn't valid JSON"),
    (b'"\xff"', 400, "isn't valid JSON"),
    (b'{"system": "\\ud800"}', 400, "isn't valid JSON"),
    (b'{"system": NaN}', 400, "isn't valid JSON"),
    (b'{"temperature": 1e999}', 400, "isn't valid JSON"),
    (b"[" * 3000, 400, "more than 100 deep"),
    (b"[" * 150 + b"]" * 150, 400, "more than 100 deep"),
    (b"[" + b"1," * 200_001 + b"1]", 413, "more than 200,000 values"),
    (b" " * 2_000_001, 413, "larger than the service takes"),
    (b"[]", 422, "must be an object"),
    (b"null", 422, "must be an object"),
    (b"{}", 422, "the key `system` is missing"),
    (b'{"sytem": "ircot"}', 422, "there is no key `sytem` (did you mean system?)"),
    (b'{"system": 1}', 422, "`system` must be text"),
    (b'{"system": "a\\u0000"}', 422, "NUL character"),
    (b'{"system": "a", "dataset": "b", "questions": "c", "seed": ' + b"9" * 400 + b"}", 422, "`seed` must be"),
    (b'{"system": "a", "dataset": "b", "questions": "c", "seed": -1}', 422, "`seed` must be a whole number from 0"),
    (b'{"system": "a", "dataset": "b", "questions": "c", "corpus": "d", "corpora": ["e"]}', 422, "give one of the two"),
]


@each_case(("body", "status", "said"), BODIES)
def test_a_body_that_cannot_be_used_is_refused_in_our_own_words(
    service: TestClient[Any], body: bytes, status: int, said: str
) -> None:
    _refused(service.post("/v1/runs", content=body, headers=JSON), status, said)


PATHS = [
    ("GET", "/v1/runs?limit=0", 422, "`limit` must be a whole number from 1 to 1,000"),
    ("GET", f"/v1/runs?limit={'9' * 5000}", 422, "`limit` must be a whole number from 1 to 1,000"),
    ("GET", "/v1/runs?limit=4.0", 422, "`limit` must be a whole number"),
    ("GET", "/v1/runs?limit=null", 422, "`limit` must be a whole number"),
    ("GET", "/v1/runs?limit=", 422, "`limit` must be a whole number"),
    ("GET", "/v1/runs?limit=1&limit=2", 422, "takes one value"),
    ("GET", "/v1/runs?limt=1", 422, "there is no parameter 'limt' (did you mean limit?)"),
    ("GET", "/v1/runs?after=%00", 422, "NUL character"),
    ("GET", "/v1/runs?after=%ff", 400, "isn't text in UTF-8"),
    ("GET", "/v1/runs/%00", 422, "NUL character"),
    ("POST", "/v1/runs/latest/pause?force=true", 422, "there is no parameter 'force'"),
    ("GET", "/v1/runs/a/b/c/d", 404, "there is nothing at this path"),
    ("GET", "/v1/%F0%9F%92%A5%ff", 404, "there is nothing at this path"),
    ("DELETE", "/v1/runs", 405, "doesn't take that method"),
    ("GET", "/v1/runs", 503, "doesn't answer"),
]


@each_case(("method", "path", "status", "said"), PATHS)
def test_a_path_or_query_that_cannot_be_used_is_refused_in_our_own_words(
    service: TestClient[Any], method: str, path: str, status: int, said: str
) -> None:
    _refused(service.request(method, path), status, said)


def test_forms_and_plain_text_of_other_sites_are_refused(service: TestClient[Any]) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        _refused(service.post("/v1/runs", content=b"{}", headers={"content-type": kind}), 415, "must be JSON")


def test_it_lives_without_servers_and_is_not_ready(service: TestClient[Any]) -> None:
    assert service.get("/health").text == "alive\n"
    answer = service.get("/ready")
    assert (answer.status_code, answer.text) == (503, "not ready\n")


def test_every_type_of_problem_is_a_heading_of_its_page() -> None:
    names = {slug(kind.__name__) for kind in (*STATUSES, CotrailError)} | {name for name, _ in UNREAD.values()} | {BUG}
    headings = re.findall("^### (.+)$", (DOCS / "api-errors.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(headings) == sorted(names)


def test_the_description_is_the_published_one_and_names_every_operation(service: TestClient[Any]) -> None:
    described = service.get("/v1/openapi/openapi.json").json()
    published = msgspec.json.decode((DOCS / "openapi.json").read_bytes())
    assert described == published, "run `python -m building.published > docs/openapi.json`"
    schemathesis.openapi.from_dict(described).validate()
    ids = {each["operationId"] for path in described["paths"].values() for each in path.values()}
    assert ids >= OPERATIONS.keys()
    for name, schema in described["components"]["schemas"].items():
        assert name.isidentifier(), f"two records have the name {name.rpartition('.')[2]}: rename one"
        jsonschema.Draft202012Validator.check_schema(schema)


def test_generators_of_clients_find_a_description_in_the_former_version(service: TestClient[Any]) -> None:
    newest, former = (service.get(f"/v1/openapi/{name}.json").json() for name in ("openapi", "openapi-3.1"))
    published = msgspec.json.decode((DOCS / "openapi-3.1.json").read_bytes())
    assert former == published, "run `python -m building.published 3.1 > docs/openapi-3.1.json`"
    assert former["openapi"] == "3.1.1"
    assert former["components"].keys() == newest["components"].keys()
    assert former["components"]["schemas"].keys() == newest["components"]["schemas"].keys()
    schemathesis.openapi.from_dict(former).validate()
    for unread in ("itemSchema", "prefixItems"):
        assert unread in str(newest)
        assert unread not in str(former)
    for described in (newest, former):
        every = {name: each for name, path in described["paths"].items() for each in path.values()}
        assert [name for name, each in every.items() if each["x-scope"] not in list(Scope)] == []


def _refused(answer: Any, status: int, said: str) -> None:
    assert answer.headers["content-type"] == "application/problem+json"
    assert HEADERS.items() <= {name: answer.headers.get(name) for name in HEADERS}.items()
    problem = answer.json()
    assert (answer.status_code, problem["status"]) == (status, status)
    assert said in problem["detail"]
    assert problem["type"].startswith(PAGE)
    assert problem["request_id"]
