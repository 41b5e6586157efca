"""Models take turns in a worker with one slot, and those that are served wait for none that computes."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, text

from benchmarks.contenders.cotrail import submission
from cotrail.models.commands.control import pause, resume
from cotrail.models.schema.database import connect
from cotrail.systems.registry import find_system
from cotrail.workers.app import THREAD_COUNT
from tests.conftest import Eventually
from tests.faults import working
from tests.faults.working import Workplace, ask, outcomes, statuses

COMMAND = "-m celery -A tests.faults.gated_worker worker -Q reason,read -P threads -c 1 -n gated@%h -l INFO"


class Gate:
    """Lets texts of the computing models be written, and says which models have begun theirs."""

    def __init__(self, home: Path) -> None:
        self._home = home
        os.mkfifo(home / "gate")
        # Open for reading too, so that neither opening nor writing waits for the worker.
        self._pipe = os.open(home / "gate", os.O_RDWR)

    def let(self, texts: int) -> None:
        os.write(self._pipe, b"." * texts)

    @property
    def begun(self) -> list[str]:
        noted = self._home / "begun"
        return noted.read_text().split() if noted.exists() else []


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workplace]:
    monkeypatch.setitem(working.COMMANDS, "worker", COMMAND.split())
    own = Workplace(Path(tempfile.mkdtemp(prefix="ct-")))
    try:
        own.start()
        yield own
    finally:
        own.stop()
        shutil.rmtree(own.home)


@pytest.fixture
def gate(place: Workplace) -> Gate:
    return Gate(place.home)


@pytest.fixture
def engine(place: Workplace) -> Iterator[Engine]:
    own = connect(place.settings.database)
    yield own
    own.dispose()


def ask_of(engine: Engine, model: str, questions: int, *, served: bool = False) -> None:
    """A run of that model and name, whose questions are a step each."""
    spec = find_system("no-retrieval")
    pinned = replace(submission().binding, model=model, corpora={})
    ask(
        engine,
        model,
        questions,
        system=spec.name,
        system_version=spec.version,
        settings=msgspec.to_builtins(spec.settings()),
        model_name=model,
        binding=pinned,
        served=served,
    )


def held(engine: Engine) -> int:
    """How many steps workers have claimed."""
    with engine.begin() as connection:
        return int(connection.execute(text("SELECT count(*) FROM steps WHERE state = 'running'")).scalar_one())


def test_a_served_model_waits_for_none_that_computes(engine: Engine, gate: Gate, eventually: Eventually) -> None:
    ask_of(engine, "slow", 20)
    eventually(lambda: gate.begun == ["slow"], "the slow model is at work")
    ask_of(engine, "served", 5, served=True)
    eventually(lambda: statuses(engine, "served") == {"finished"}, "the served model has answered")
    assert gate.begun.count("slow") == 1
    assert held(engine) == 1
    gate.let(20)
    eventually(lambda: statuses(engine, "slow") == {"finished"}, "the slow model has answered")
    assert outcomes(engine, "slow") == {"finished": 20}


def test_a_worker_that_is_told_to_end_gives_back_steps_of_served_models(
    engine: Engine, place: Workplace, gate: Gate, eventually: Eventually
) -> None:
    ask_of(engine, "endless", THREAD_COUNT + 3, served=True)
    eventually(lambda: len(gate.begun) == THREAD_COUNT, "as many steps are under way as may be")
    place.end("worker")
    eventually(lambda: len(gate.begun) == 2 * THREAD_COUNT, "the next worker is as far")
    assert outcomes(engine, "endless") == {"released": THREAD_COUNT, None: THREAD_COUNT}


def test_steps_of_served_models_come_again_once_redis_is_back(
    engine: Engine, place: Workplace, gate: Gate, eventually: Eventually
) -> None:
    ask_of(engine, "slow", 2)
    eventually(lambda: gate.begun == ["slow"], "the slow model is at work")
    place.kill_server("redis")
    place.stack.start_servers()
    ask_of(engine, "served", 5, served=True)
    eventually(lambda: statuses(engine, "served") == {"finished"}, "the served model has answered")
    gate.let(2)
    eventually(lambda: statuses(engine, "slow") == {"finished"}, "the slow model has answered")
    assert outcomes(engine, "slow") == {"finished": 2}
    assert place.starts["worker"] == 1


def test_models_that_compute_take_turns(engine: Engine, gate: Gate, eventually: Eventually) -> None:
    ask_of(engine, "slow", 8)
    eventually(lambda: gate.begun == ["slow"], "the slow model is at work")
    ask_of(engine, "other", 4)
    eventually(lambda: sent(engine, "other") == 4, "the other one's steps are in the queue")
    gate.let(12)
    eventually(lambda: statuses(engine, "slow") == statuses(engine, "other") == {"finished"}, "both have answered")
    assert gate.begun == ["slow", "other"] * 4 + ["slow"] * 4
    assert outcomes(engine, "slow") == {"finished": 8}
    assert outcomes(engine, "other") == {"finished": 4}


def test_a_paused_model_has_no_turn(engine: Engine, gate: Gate, eventually: Eventually) -> None:
    ask_of(engine, "slow", 3)
    eventually(lambda: gate.begun == ["slow"], "the slow model is at work")
    ask_of(engine, "other", 2)
    eventually(lambda: sent(engine, "other") == 2, "the other one's steps are in the queue")
    pause(engine, "other")
    gate.let(3)
    eventually(lambda: statuses(engine, "slow") == {"finished"}, "the slow model has answered")
    assert gate.begun == ["slow"] * 3
    resume(engine, "other", find_system)
    gate.let(2)
    eventually(lambda: statuses(engine, "other") == {"finished"}, "the other model has answered")


def sent(engine: Engine, run: str) -> int:
    """How many of a run's steps wait in a queue."""
    query = "SELECT count(*) FROM steps WHERE run_id = :run AND state = 'ready' AND sent_at IS NOT NULL"
    with engine.begin() as connection:
        return int(connection.execute(text(query), {"run": run}).scalar_one())
