"""Limits of hosted models from end to end: a real stack, and servers that hold limits or whose account is used up."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine

from cotrail.models.queries.progress import Outage, read_outages
from cotrail.services.runs.speed import outage_line
from cotrail.workers.app import THREAD_COUNT
from tests.conftest import Eventually
from tests.faults.stacked import Cotrail, count, open_questions
from tests.integration.served import Served, answer, held
from tests.leases import Lease

QUESTIONS = 3
MANY = THREAD_COUNT + 24
SAID = {"choices": [{"message": {"content": "Brenn."}, "finish_reason": "stop"}]}
SERVED = """
[models.{name}]
engine = "openai"
url = "{url}"
model = "gpt"
context = 4096
api = "chat"
thinks = "no"
omits = ["stream"]
account = "{name}"
"""
# One in ten seconds, which is longer than a step holds a thread.
LIMITS = {"slow": "limits = { requests = 6 }\n"}
REPLIES = {
    "slow": answer(200, SAID),
    "pausing": answer(429, {"error": {"message": "slow down"}}, {"Retry-After": "600"}),
    "empty": answer(429, {"error": {"code": "insufficient_quota", "message": "You exceeded your quota"}}),
}


@pytest.fixture(scope="module")
def released() -> threading.Event:
    """What the answers of one provider wait for."""
    return threading.Event()


@pytest.fixture(scope="module")
def providers(released: threading.Event) -> Iterator[dict[str, Served]]:
    servers = {}
    for name, reply in {**REPLIES, "generous": held(released, answer(200, SAID))}.items():
        servers[name] = Served()
        servers[name].replies = [reply]
    yield servers
    released.set()
    for server in servers.values():
        server.close()


@pytest.fixture(scope="module")
def cotrail(providers: dict[str, Served], lease: Lease) -> Cotrail:
    """A stack with hosted models beside its scripted one, and questions."""
    lease.add_models(
        "".join(SERVED.format(name=name, url=server.url) + LIMITS.get(name, "") for name, server in providers.items())
    )
    asked = [json.dumps({"id": f"q{n}", "question": f"What is town {n}?"}) for n in range(MANY)]
    (lease.folder / "questions.jsonl").write_text("\n".join(asked))
    return lease.cotrail


def submit(lease: Lease, model: str, questions: int = QUESTIONS) -> str:
    options = f"--system no-retrieval --dataset jsonl --questions {lease.folder}/questions.jsonl --model {model} --json"
    return str(json.loads(lease.cotrail("submit", *options.split(), "--limit", str(questions)).splitlines()[-1])["run"])


def waits(engine: Engine, run: str) -> tuple[Outage, ...]:
    with engine.connect() as connection:
        return read_outages(connection, run)


def test_a_run_at_its_limits_says_so_goes_on_and_holds_up_no_other(
    cotrail: Cotrail, lease: Lease, eventually: Eventually
) -> None:
    run = submit(lease, "slow")
    seen: list[Outage] = []

    def look() -> bool:
        seen.extend(waits(lease.engine, run))
        return bool(seen)

    eventually(look, "it is seen what the run waits for")
    other = submit(lease, "scripted")
    eventually(lambda: open_questions(lease.engine, other) == 0, "another model's run has ended")
    assert (seen[0].busy, seen[0].what) == (True, "the model server")
    line = outage_line(seen[0])
    assert "(waiting for the limits of gpt (slow): 6 requests a minute): " in line
    assert "the next is " in line
    eventually(lambda: open_questions(lease.engine, run) == 0, "the run has ended, however slowly")
    answered = "SELECT count(*) FROM questions WHERE run_id = :run AND status = 'finished'"
    assert count(lease.engine, run, answered) == QUESTIONS
    assert waits(lease.engine, run) == ()


def test_a_pause_that_a_provider_asks_for_is_waited_for_by_all_steps(
    cotrail: Cotrail, lease: Lease, providers: dict[str, Served], eventually: Eventually
) -> None:
    run = submit(lease, "pausing")
    eventually(lambda: [each for each in waits(lease.engine, run) if each.steps == QUESTIONS], "all steps wait")
    [outage] = json.loads(cotrail("show", run, "--json"))["outages"]
    assert outage["busy"]
    assert outage["next_seconds"] > 200
    assert "429: slow down" in outage["message"] or "gpt (pausing), which asked for a pause of" in outage["message"]
    assert len(providers["pausing"].generations) == 1
    cotrail("cancel", run)


def test_a_hosted_model_has_more_requests_under_way_than_a_worker_takes_steps_of_own_servers(
    cotrail: Cotrail, lease: Lease, providers: dict[str, Served], released: threading.Event, eventually: Eventually
) -> None:
    run = submit(lease, "generous", MANY)
    eventually(lambda: len(providers["generous"].generations) == MANY, "all requests are under way at once")
    other = submit(lease, "scripted")
    eventually(lambda: open_questions(lease.engine, other) == 0, "another model's run has ended meanwhile")
    released.set()
    eventually(lambda: open_questions(lease.engine, run) == 0, "all are answered")


def test_a_used_up_quota_blocks_the_run_with_its_cause(
    cotrail: Cotrail, lease: Lease, providers: dict[str, Served], eventually: Eventually
) -> None:
    run = submit(lease, "empty")
    eventually(lambda: open_questions(lease.engine, run) == 0, "no question goes on")
    details: dict[str, Any] = json.loads(cotrail("show", run, "--json"))
    assert details["blocked"] == QUESTIONS
    [cause] = details["reasons"]
    assert (cause["type"], cause["questions"]) == ("QuotaError", QUESTIONS)
    assert "You exceeded your quota" in cause["message"]
    assert "`cotrail resume RUN`" in cause["message"]
    assert len(providers["empty"].generations) == QUESTIONS
