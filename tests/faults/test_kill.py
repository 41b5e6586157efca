"""`kill -9` of any part in mid-run: after `cotrail up` the run finishes as if nothing had been.

One real stack, its scripted model, and the bundled sample asked many times over. Every test's run must leave the
very steps that an undisturbed run left.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from sqlalchemy import Engine

from cotrail.configuration.settings import Settings
from cotrail.data.corpora.files import read_corpus
from cotrail.engines.retrieval.stores import FolderStore
from cotrail.models.commands.control import pause
from tests.conftest import Eventually
from tests.faults.stacked import (
    SAMPLE,
    Cotrail,
    begun,
    count,
    is_as_undisturbed,
    kill_in_mid_run,
    open_questions,
    process,
    steps_of,
)
from tests.homes import SCRIPTED, asked_often, home_of

ROUNDS = 5
"""How often the sample's 32 questions are asked in one run: enough that a kill comes in the middle."""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home with the sample asked many times over, and a scripted model that knows the answers."""
    sample = [json.loads(line) for line in (SAMPLE / "questions.jsonl").read_text().splitlines()]
    chains = {q["question"]: {"sentences": q["chain"], "answer": q["answers"][0]} for q in sample}
    script = {"name": "sample", "questions": chains}
    with home_of(
        {"script.json": script, "models.toml": SCRIPTED, "questions.jsonl": asked_often(sample, ROUNDS)}
    ) as made:
        yield made


@pytest.fixture(scope="module")
def submit(cotrail: Cotrail, home: Path) -> Callable[[], str]:
    """Submits the run; returns its id."""

    def submit() -> str:
        options = f"--system ircot --dataset jsonl --corpus sample --model scripted --questions {home}/questions.jsonl"
        demonstrations = str(SAMPLE / "demonstrations.txt")
        output = cotrail("submit", *options.split(), "--demonstrations", demonstrations, "--json")
        return str(json.loads(output.splitlines()[-1])["run"])

    return submit


@pytest.fixture(scope="module")
def undisturbed(engine: Engine, submit: Callable[[], str], eventually: Eventually) -> list[Any]:
    """The steps of a run that nothing happened to."""
    run = submit()
    eventually(lambda: open_questions(engine, run) == 0, "the undisturbed run is finished", 120)
    found = steps_of(engine, run)
    assert len(found) > 5 * 32 * ROUNDS
    return found


@pytest.mark.parametrize(
    "name",
    [
        "generation",
        "postgres",
        *(pytest.param(name, marks=pytest.mark.slow(group=6)) for name in ("retrieval", "maintenance", "redis")),
    ],
)
def test_a_run_goes_on_after_kill_9_and_up(
    name: str, cotrail: Cotrail, engine: Engine, submit: Callable[[], str], undisturbed: list[Any]
) -> None:
    run = kill_in_mid_run(cotrail, engine, name, submit, len(undisturbed))
    is_as_undisturbed(engine, run, undisturbed)


def test_an_emptied_redis_is_refilled_without_anybodys_help(
    home: Path,
    cotrail: Cotrail,
    engine: Engine,
    submit: Callable[[], str],
    undisturbed: list[Any],
    eventually: Eventually,
) -> None:
    run = begun(cotrail, engine, submit, len(undisturbed))
    socket = Settings(home=home, broker_url=None).socket_path / "redis.sock"
    with Redis(unix_socket_path=str(socket)) as server:
        server.flushall()
    eventually(lambda: open_questions(engine, run) == 0, "the run is finished", 120)
    is_as_undisturbed(engine, run, undisturbed)


def test_workers_that_are_told_to_end_give_back_what_they_hold(
    cotrail: Cotrail, engine: Engine, submit: Callable[[], str], undisturbed: list[Any], eventually: Eventually
) -> None:
    workers = [process(cotrail, name) for name in ("generation", "retrieval")]
    run = begun(cotrail, engine, submit, len(undisturbed))
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.wait(20)
    held = "SELECT count(*) FROM steps WHERE run_id = :run AND state = 'running'"
    assert count(engine, run, held) == 0
    cotrail("up")
    eventually(lambda: open_questions(engine, run) == 0, "the run is finished", 120)
    expired = "SELECT count(*) FROM attempts JOIN steps ON step_id = id WHERE run_id = :run AND outcome = 'expired'"
    assert count(engine, run, expired) == 0
    is_as_undisturbed(engine, run, undisturbed)


def test_a_frozen_worker_loses_its_steps_and_what_it_brings_late_changes_nothing(
    cotrail: Cotrail, engine: Engine, submit: Callable[[], str], undisturbed: list[Any], eventually: Eventually
) -> None:
    worker = process(cotrail, "generation")
    run = begun(cotrail, engine, submit, len(undisturbed))
    expired = "SELECT count(*) FROM attempts JOIN steps ON step_id = id WHERE run_id = :run AND outcome = 'expired'"
    held = "SELECT count(*) FROM steps WHERE run_id = :run AND state = 'running' AND kind <> 'retrieve'"

    def lost_a_step() -> bool:
        """What the server was told before the freeze may still be done, so that nothing is held after all."""
        if count(engine, run, expired) > 0:
            return True
        worker.suspend()
        if not count(engine, run, held):
            worker.resume()
        return False

    try:
        eventually(lost_a_step, "maintenance took a step away from the frozen worker")
    finally:
        worker.resume()
    eventually(lambda: open_questions(engine, run) == 0, "the run is finished", 120)
    is_as_undisturbed(engine, run, undisturbed)


def test_a_corpus_indexed_anew_under_a_run_blocks_it_until_the_former_is_back(
    home: Path,
    cotrail: Cotrail,
    engine: Engine,
    submit: Callable[[], str],
    undisturbed: list[Any],
    eventually: Eventually,
) -> None:
    run = begun(cotrail, engine, submit, len(undisturbed))
    pause(engine, run)  # at once: while the command starts the run may end
    other = home / "other.jsonl"
    other.write_text('{"id": "o1", "title": "Ostreva", "text": "Another paragraph of the same name."}\n')
    # The command doesn't: it knows that a run needs what is there.
    FolderStore(home / "corpora").build("sample", read_corpus([other]))
    cotrail("down")
    engine.dispose()
    cotrail("up")
    cotrail("resume", run)
    reasons = "SELECT count(*) FROM questions WHERE run_id = :run AND reason->>'type' = 'CorpusChangedError'"
    under_way = "SELECT count(*) FROM steps WHERE run_id = :run AND state IN ('ready', 'running')"
    eventually(
        lambda: count(engine, run, reasons) > 0 and count(engine, run, under_way) == 0,
        "what was begun is finished or blocked",
    )
    cotrail("index", str(SAMPLE / "corpus.jsonl"), "--name", "sample")
    cotrail("resume", run)
    eventually(lambda: open_questions(engine, run) == 0, "the run is finished", 120)
    is_as_undisturbed(engine, run, undisturbed)
