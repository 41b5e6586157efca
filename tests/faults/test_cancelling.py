"""`cotrail cancel` in the middle of a generation: a real stack, and a server whose streams stop for a while."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from sqlalchemy import text

from cotrail.configuration.settings import Settings
from cotrail.workers.app import THREAD_COUNT
from tests.conftest import Eventually
from tests.faults.stacked import Cotrail, count, open_questions, steps_of
from tests.integration.served import Served, paused, piece, streamed
from tests.leases import Lease

QUEUED = 4
"""How many steps of the cancelled run wait: the worker has `THREAD_COUNT` under way, one of them the other run's."""


@pytest.fixture(scope="module")
def released() -> threading.Event:
    """What the streams wait for."""
    return threading.Event()


@pytest.fixture(scope="module")
def held(released: threading.Event) -> Iterator[Served]:
    """A server whose streams stop after the first words."""
    server = Served()
    rest = [piece(" it."), piece("", "stop"), "[DONE]"]
    server.replies = [streamed(paused([piece("Brenn is")], released, rest)) for _ in range(THREAD_COUNT)]
    yield server
    released.set()
    server.close()


@pytest.fixture(scope="module")
def cotrail(held: Served, lease: Lease) -> Cotrail:
    """A stack with a model behind that server, and questions."""
    lease.add_models(f'[models.held]\nengine = "openai"\nurl = "{held.url}"\nmodel = "m"\ncontext = 4096\n')
    asked = [json.dumps({"id": f"q{n}", "question": f"What is town {n}?"}) for n in range(THREAD_COUNT + QUEUED - 1)]
    (lease.folder / "questions.jsonl").write_text("\n".join(asked))
    return lease.cotrail


def submit(lease: Lease, model: str, questions: int) -> str:
    options = f"--system no-retrieval --dataset jsonl --questions {lease.folder}/questions.jsonl --model {model} --json"
    return str(json.loads(lease.cotrail("submit", *options.split(), "--limit", str(questions)).splitlines()[-1])["run"])


def queued(home: Path) -> int:
    """How many messages lie in the queue of the only kind of step that these runs have."""
    with Redis(unix_socket_path=str(Settings(home=home).socket_path / "redis.sock")) as client:
        keys = [key for key in client.keys("cotrail:read*") if client.type(key) == b"list"]
        return sum(client.llen(key) for key in keys)


def test_a_cancelled_generation_frees_its_worker_and_leaves_no_trace(
    cotrail: Cotrail, lease: Lease, held: Served, released: threading.Event, eventually: Eventually
) -> None:
    other = submit(lease, "held", 1)
    eventually(lambda: len(held.generations) == 1, "the other run's generation is under way")
    cancelled = submit(lease, "held", THREAD_COUNT - 1 + QUEUED)
    eventually(lambda: len(held.generations) == THREAD_COUNT, "the worker has as many generations under way as it may")
    eventually(lambda: queued(lease.home) == QUEUED, "the other messages are queued")

    cotrail("cancel", cancelled)
    left = steps_of(lease.engine, cancelled)
    eventually(lambda: queued(lease.home) == 0, "the messages are taken back")
    quick = submit(lease, "scripted", 3)
    eventually(lambda: open_questions(lease.engine, quick) == 0, "the worker is free for another run")
    assert open_questions(lease.engine, other) == 1

    released.set()
    eventually(lambda: open_questions(lease.engine, other) == 0, "the other run's generation goes on")
    assert steps_of(lease.engine, cancelled) == left
    assert len(held.generations) == THREAD_COUNT
    states = "SELECT count(*) FROM steps WHERE run_id = :run AND state = 'cancelled' AND result IS NULL"
    assert count(lease.engine, cancelled, states) == THREAD_COUNT - 1 + QUEUED
    with lease.engine.begin() as connection:
        executions = text("SELECT outcome FROM attempts JOIN steps ON id = step_id WHERE run_id = :run")
        assert connection.execute(executions, {"run": cancelled}).scalars().all() == ["cancelled"] * (THREAD_COUNT - 1)
        answered = text("SELECT answer FROM questions WHERE run_id = :run")
        assert connection.execute(answered, {"run": other}).scalars().all() == ["Brenn is it"]
