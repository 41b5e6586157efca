"""What Flower shows of steps: which they are, and what became of them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from redis import Redis

from cotrail.configuration.settings import Settings
from cotrail.workers.stack.stack import Stack
from cotrail.workers.stack.web import read_access, read_address
from tests.conftest import wait_until
from tests.faults.stacked import Cotrail, stacked
from tests.homes import answering, home_of
from tests.integration.flower_controls import fetch

QUESTION = "Where is Marlow?"


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    names = ("kept", "removed")
    entries = [f'[models.{name}]\nengine = "scripted"\npath = "{name}.json"\n' for name in names]
    scripts = {f"{name}.json": answering("Marlow") | {"name": name} for name in names}
    asked = [{"id": "<town> 1", "question": QUESTION}]
    with home_of({**scripts, "models.toml": "\n".join(entries), "questions.jsonl": asked}) as made:
        yield made


@pytest.fixture(scope="module")
def cotrail(home: Path) -> Iterator[Cotrail]:
    # Each step has one message, however long it waits for its worker and however slow that is.
    patient = {"COTRAIL_RESEND_SECONDS": "600", "COTRAIL_LEASE_SECONDS": "600"}
    with stacked(home, {"COTRAIL_MODEL": "kept", **patient}) as run:
        yield run


@pytest.fixture(scope="module")
def tasks(home: Path, cotrail: Cotrail) -> Any:
    """Flower's tasks of a run that ends, and of one whose model is gone, by their runs and kinds."""
    cotrail("up")
    cotrail("down")
    settings = Settings(home=home, database_url=None, broker_url=None)
    Stack(settings).start_servers()
    runs = {model: submit(cotrail, home, model) for model in ("kept", "removed")}
    (home / "removed.json").unlink()
    for run in runs.values():
        cotrail("pause", run)
    with Redis(unix_socket_path=str(settings.socket_path / "redis.sock")) as broker:
        broker.flushall()  # the messages of steps that wait for nothing now, which Flower would show if it comes early
    cotrail("up", "--flower")
    access = read_access(home / "flower.json")
    assert access is not None

    def shown() -> dict[str, list[Any]]:
        found = json.loads(fetch(access.port, "/api/tasks", access.credentials)).values()
        about = {model: f"run {run}," for model, run in runs.items()}
        return {model: [task for task in found if (task["args"] or "").startswith(about[model])] for model in runs}

    def ended() -> bool:
        return all(any(task["state"] in ENDED for task in tasks) for tasks in shown().values())

    # An event that is sent before Flower listens is lost.
    wait_until(lambda: b"generation@" in fetch(access.port, "/workers?json=1", access.credentials), "Flower listens")
    for run in runs.values():
        cotrail("resume", run)
    wait_until(ended, "Flower shows what became of the runs")
    return shown()


ENDED = {"SUCCESS", "FAILURE", "BLOCKED"}


def submit(cotrail: Cotrail, home: Path, model: str) -> str:
    options = f"--system no-retrieval --dataset jsonl --questions {home}/questions.jsonl --model {model} --json"
    return str(json.loads(cotrail("submit", *options.split()).splitlines()[-1])["run"])


def test_a_step_that_has_a_result_is_a_success_and_says_which_it_is(tasks: Any) -> None:
    (task,) = tasks["kept"]
    assert task["state"] == "SUCCESS"
    assert task["name"] == "cotrail.read"
    assert task["args"].endswith("question '<town> 1', step 1")
    assert task["kwargs"].startswith("step_id=")


def test_a_blocked_step_is_no_success(tasks: Any) -> None:
    # Where the machine is slow, the message may come once more; what it finds is no success either.
    assert "BLOCKED" in {task["state"] for task in tasks["removed"]}
    assert [task for task in tasks["removed"] if task["succeeded"] is not None] == []


def test_no_question_is_in_what_flower_is_told(tasks: Any) -> None:
    assert QUESTION not in json.dumps(tasks)


def test_the_viewer_leads_to_flower(home: Path, tasks: Any) -> None:
    service, access = read_address(home / "api.json"), read_access(home / "flower.json")
    assert service is not None
    assert access is not None
    page = httpx2.get(f"{service.url}/workers", headers={"Accept": "text/html"}, timeout=60).raise_for_status()
    assert f'href="{access.url}"' in page.text
