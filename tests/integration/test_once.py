"""Requests with an `Idempotency-Key` are carried out once; quotas hold however many submit at once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient
from msgspec.structs import replace
from sqlalchemy import Engine, func, insert, select, update

from benchmarks.contenders.cotrail import submission
from cotrail.configuration.settings import settings
from cotrail.errors import ConflictError, InputError, QuotaExceededError
from cotrail.models.commands import submission as submitting
from cotrail.models.commands.submission import submit
from cotrail.models.execution.ledger import Ledger
from cotrail.models.records.idempotency import IDEMPOTENCY, KeyedRequest
from cotrail.models.records.projects import PROJECT
from cotrail.models.schema.service_tables import idempotency_keys, projects
from cotrail.models.schema.tables import questions, run_consumption, runs
from cotrail.systems.registry import find_system
from tests.integration import judged
from tests.integration.asked_service import service, upload, write_home
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import LEASE, ask, begin, run_to_end

THREADS = 20


@pytest.fixture
def asked(tmp_path: Path, cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    return write_home(tmp_path / "home")


@pytest.fixture
def here(asked: Any, tmp_path: Path) -> "Iterator[TestClient[Any]]":
    with service() as client:
        upload(client, tmp_path / "home", {})
        yield client


def keyed(key: str) -> dict[str, str]:
    return {"Idempotency-Key": key}


def count(query: Query) -> int:
    return int(query(select(func.count().label("n")).select_from(runs))[0]["n"])


def test_the_same_request_with_one_key_makes_one_run_however_many_send_it_at_once(
    here: "TestClient[Any]", asked: dict[str, Any], query: Query
) -> None:
    def send(_: int) -> Any:
        return here.post("/v1/runs", json=asked | {"name": "once"}, headers=keyed("k"))

    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(send, range(THREADS)))
    assert {each.status_code for each in answers} == {201}
    assert len({each.text for each in answers}) == 1
    assert count(query) == 1
    assert here.post("/v1/runs", json=asked).json() != answers[0].json()  # without a key


def test_a_key_belongs_to_one_request_and_is_kept_for_a_day(
    here: "TestClient[Any]", asked: dict[str, Any], query: Query
) -> None:
    first = here.post("/v1/runs", json=asked, headers=keyed("k"))
    other = here.post("/v1/runs", json=asked | {"seed": 5}, headers=keyed("k"))
    assert (first.status_code, other.status_code) == (201, 409)
    assert here.post("/v1/runs", json=asked | {"seed": 5}, headers=keyed("l")).status_code == 201
    for refused in (b"", "é".encode(), b"k" * 256):
        answer = here.post("/v1/runs", json=asked, headers={b"Idempotency-Key": refused})
        assert answer.status_code == 422
    day_ago = func.now() - func.make_interval(0, 0, 0, 1)
    query(update(idempotency_keys).values(created_at=day_ago).returning(idempotency_keys.c.key))
    assert here.post("/v1/runs", json=asked | {"seed": 5}, headers=keyed("k")).status_code == 201
    assert len(query(select(idempotency_keys))) == 1


def test_a_refused_request_keeps_no_key(here: "TestClient[Any]", asked: dict[str, Any], query: Query) -> None:
    here.patch("/v1/projects/default", json={"open_questions": 1})
    refused = here.post("/v1/runs", json=asked, headers=keyed("k"))
    assert (refused.status_code, "larger quota" in refused.text) == (429, True)
    assert query(select(idempotency_keys)) == []
    here.patch("/v1/projects/default", json={"open_questions": None})
    assert here.post("/v1/runs", json=asked, headers=keyed("k")).status_code == 201


def test_a_server_that_fails_between_commit_and_answer_is_asked_again_and_nothing_is_made_twice(
    here: "TestClient[Any]", asked: dict[str, Any], query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = submitting.submit_together

    def dies(*given: Any) -> Any:
        real(*given)
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(submitting, "submit_together", dies)
        assert here.post("/v1/runs", json=asked, headers=keyed("k")).status_code == 500
    answer = here.post("/v1/runs", json=asked, headers=keyed("k"))
    assert answer.status_code == 201
    assert [each["run"] for each in answer.json()["runs"]] == [row["id"] for row in query(select(runs))]


def test_a_fork_with_a_key_is_made_once(here: "TestClient[Any]", asked: dict[str, Any], query: Query) -> None:
    run = here.post("/v1/runs", json=asked).json()["runs"][0]["run"]
    first, second = (here.post("/v1/runs/fork", json={"run": run}, headers=keyed("k")) for _ in range(2))
    assert (first.status_code, first.json()) == (201, second.json())
    assert count(query) == 2


def twice_at_once(client: "TestClient[Any]", path: str, body: dict[str, Any]) -> Any:
    """The answer to requests with one key, all of which are answered alike."""
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: client.post(path, json=body, headers=keyed("k")), range(4)))
    assert {each.status_code for each in answers} <= {201, 202}, answers[0].text
    assert len({each.text for each in answers}) == 1
    assert client.post(path, json=body, headers=keyed("k")).text == answers[0].text
    return answers[0].json()


def test_judges_with_a_key_begin_once(here: "TestClient[Any]", engine: Engine, query: Query) -> None:
    body = {"judge": {"run": judged.answer(engine), "limit": 2}, "models": ["scripted", "other"]}
    begun = twice_at_once(here, "/v1/judges", body)
    assert [(each["judge"]["model"], each["judge"]["left_out"]) for each in begun] == [("scripted", 1), ("other", 1)]
    assert count(query) == 3


def test_repeated_steps_with_a_key_are_begun_once(
    here: "TestClient[Any]", engine: Engine, tmp_path: Path, query: Query
) -> None:
    models = tmp_path / "home" / "models.toml"
    models.write_text(f'{models.read_text()}\n[models.costless]\nengine = "scripted"\npath = "script.json"\n')
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine, 4, id="origin"))
    begun = twice_at_once(here, "/v1/runs/origin/repeats", {"share": 0.5})
    assert (begun["questions"], begun["steps"]) == (4, 2)
    assert count(query) == 2


@pytest.mark.parametrize("path", ["/v1/corpora", "/v1/experiments"])
def test_a_job_with_a_key_is_queued_once_even_if_it_has_ended(
    here: "TestClient[Any]", asked: dict[str, Any], path: str
) -> None:
    files = {"questions": "questions.jsonl", "corpus": "mine", "demonstrations": "shots"}
    experiment = {"name": "mine", "systems": ["ircot"], "datasets": {"hotpotqa": files}}
    bodies: dict[str, dict[str, Any]] = {
        "/v1/corpora": {"name": "mine", "files": [asked["questions"]], "places": ["corpus.jsonl"]},
        "/v1/experiments": {"experiment": experiment},
    }
    job = twice_at_once(here, path, bodies[path])["job"]
    cancelled = here.post(f"/v1/jobs/{job}/cancel").json()
    assert here.post(path, json=bodies[path], headers=keyed("k")).json() == cancelled
    other = here.post(path, json=bodies[path], headers=keyed("l")).json()
    assert (other["job"] == job, other["state"]) == (False, "queued")


def test_a_key_is_refused_where_it_would_promise_too_much(here: "TestClient[Any]") -> None:
    made = here.post("/v1/tokens", json={"name": "x", "scopes": ["read"]}, headers=keyed("k"))
    assert (made.status_code, "no Idempotency-Key" in made.text) == (422, True)
    told = here.post("/v1/ask", json={"question": "Who?"}, headers=keyed("k"))
    assert (told.status_code, "no Idempotency-Key" in told.text) == (422, True)


def of(engine: Engine, project: str, key: str | None = None) -> Engine:
    request = None if key is None else KeyedRequest(key, "digest")
    return engine.execution_options(**{PROJECT: project, IDEMPOTENCY: request})


def test_submissions_at_once_cannot_exceed_the_open_questions_of_a_project(engine: Engine, query: Query) -> None:
    query(insert(projects).values(name="ours", open_questions=10).returning(projects.c.name))

    def send(number: int) -> bool:
        try:
            submit(of(engine, "ours"), replace(submission(), id=f"run-{number}"), ask(3), find_system)
        except QuotaExceededError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(send, range(8)))
    assert sum(taken) == 3
    assert len(query(select(questions.c.id))) == 9
    submit(engine, replace(submission(), id="of-others"), ask(20), find_system)


def priced(run: str, budget: float | None) -> Any:
    limits = {} if budget is None else {"budgets": {"run": {"money": budget}}}
    given = submission()
    provenance = given.provenance | {"prices": {"model": None}} | limits
    return replace(given, id=run, provenance=provenance)


def test_money_is_set_aside_for_runs_that_are_open_and_what_they_spent_stays_spent(
    engine: Engine, query: Query
) -> None:
    query(insert(projects).values(name="ours", money=Decimal(5)).returning(projects.c.name))
    own = of(engine, "ours")
    submit(own, submission(), ask(1), find_system)  # costs nothing
    with pytest.raises(InputError, match="budget of money"):
        submit(own, priced("a", None), ask(1), find_system)
    submit(own, priced("b", 3.0), ask(1), find_system)
    with pytest.raises(QuotaExceededError, match=r"\$6.00, and may spend \$5.00"):
        submit(own, priced("c", 3.0), ask(1), find_system)
    ended = update(runs).where(runs.c.id == "b").values(desired_state="cancelled").returning(runs.c.id)
    spent = {"run_id": "b", "steps": 1, "tokens": 1, "seconds": 1, "money": Decimal("2.5")}
    query(insert(run_consumption).values(spent).returning(run_consumption.c.run_id))
    query(ended)
    submit(own, priced("d", 2.5), ask(1), find_system)
    with pytest.raises(QuotaExceededError):
        submit(own, priced("e", 0.1), ask(1), find_system)


def test_a_second_transaction_with_a_key_waits_for_the_first(engine: Engine) -> None:
    submit(of(engine, "default", "k"), replace(submission(), id="first"), ask(1), find_system)
    other = engine.execution_options(**{PROJECT: "default", IDEMPOTENCY: KeyedRequest("k", "another digest")})
    with pytest.raises(ConflictError, match="another request"):
        submit(other, replace(submission(), id="second"), ask(1), find_system)
