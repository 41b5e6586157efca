"""A real local stack, run by the command line, and queries of its store."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import Engine, text

from cotrail.audit.verification import verify
from cotrail.cli.commands.stack import BROKEN_STACK
from cotrail.configuration.settings import Settings
from cotrail.models.records.trail import read_trail
from cotrail.workers.stack.stack import Stack
from tests.clusters import lay_cluster
from tests.conftest import wait_until
from tests.faults.inner.points import Point, Points

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "cotrail" / "sample"
COTRAIL = (sys.executable, "-m", "cotrail.cli.main")
UNSUPERVISED = (sys.executable, "-m", "tests.faults.unsupervised")
QUICK = {"COTRAIL_LEASE_SECONDS": "3", "COTRAIL_HEARTBEAT_SECONDS": "0.5", "COTRAIL_RESEND_SECONDS": "1"}

Cotrail = Callable[..., str]
STEPS = """
    SELECT key, sequence, steps.kind, fingerprint, request, result, failure, steps.state,
        (SELECT text FROM sentences WHERE step_id = steps.id),
        (SELECT json_agg((rank, digest, score, query) ORDER BY rank) FROM paragraph_sets WHERE step_id = steps.id)
    FROM steps JOIN questions ON questions.id = question_id
    WHERE steps.run_id = :run ORDER BY key, sequence
"""
ANSWERS = """
    SELECT key, status, answer, sentences, collected, judged, weighing FROM questions WHERE run_id = :run ORDER BY key
"""

Undisturbed = tuple[list[Any], list[Any]]
"""The steps and the answers of a run that nothing happened to."""


def environment_of(home: Path, variables: Mapping[str, str] = {}) -> dict[str, str]:
    """The environment of the command line and of everything that it starts."""
    return {**os.environ, **QUICK, "COTRAIL_HOME": str(home), "COTRAIL_MODEL": "scripted", **variables}


@contextmanager
def stacked(home: Path, variables: Mapping[str, str] = {}, *, supervised: bool = False) -> Iterator[Cotrail]:
    """Runs commands as processes of their own; everything that they start in the home is ended at the end.

    variables: further environment variables of the processes.
    supervised: whether what dies is started again; otherwise it stays dead until a test says `up`.
    """
    own = Settings(home=home, database_url=None, broker_url=None)
    environment = environment_of(home, variables)

    def cotrail(*arguments: str, **changes: str) -> str:
        command = COTRAIL if supervised or arguments[0] != "up" else UNSUPERVISED
        if arguments[0] == "up":
            lay_cluster(home)
        call = [*command, *arguments]
        done = subprocess.run(call, env=environment | changes, cwd=ROOT, capture_output=True, text=True)
        shown = arguments[0] == "stack" and done.returncode == BROKEN_STACK  # a worker on demand may be starting
        assert done.returncode == 0 or shown, done.stderr + done.stdout
        return done.stdout

    try:
        yield cotrail
    finally:
        Stack(own).remove()
    assert not [p for p in psutil.process_iter(["cmdline"]) if str(home) in " ".join(p.info["cmdline"] or ())]


def steps_of(engine: Engine, run: str) -> list[Any]:
    with engine.begin() as connection:
        return [tuple(row) for row in connection.execute(text(STEPS), {"run": run})]


def answers_of(engine: Engine, run: str) -> list[Any]:
    """The answers with all that was made of them."""
    with engine.begin() as connection:
        return [tuple(row) for row in connection.execute(text(ANSWERS), {"run": run})]


def count(engine: Engine, run: str, query: str) -> int:
    with engine.begin() as connection:
        return int(connection.execute(text(query), {"run": run}).scalar_one())


def open_questions(engine: Engine, run: str) -> int:
    return count(engine, run, "SELECT count(*) FROM questions WHERE run_id = :run AND status = 'open'")


def finished_steps(engine: Engine, run: str) -> int:
    return count(engine, run, "SELECT count(*) FROM steps WHERE run_id = :run AND state = 'finished'")


def process(cotrail: Cotrail, name: str) -> psutil.Process:
    services = json.loads(cotrail("stack", "--json"))
    services = services["services"] if isinstance(services, dict) else services
    return psutil.Process(next(service["pid"] for service in services if service["name"] == name))


@contextmanager
def suspended(process: psutil.Process) -> Iterator[None]:
    """Keeps a process from its work meanwhile."""
    process.suspend()
    try:
        yield
    finally:
        process.resume()


def begun(cotrail: Cotrail, engine: Engine, submit: Callable[[], str], steps: int) -> str:
    """Submits a run; returns its id when a quarter of so many steps are finished, and the others aren't."""
    # While the command comes to its end, which takes long on a busy machine, the run would come to its own.
    with suspended(process(cotrail, "generation")):
        run = submit()
    wait_until(lambda: finished_steps(engine, run) > steps // 4, "a quarter of the steps are finished")
    assert open_questions(engine, run) > 0, "the run was over before the kill: ask more questions"
    return run


def kill_in_mid_run(cotrail: Cotrail, engine: Engine, name: str, submit: Callable[[], str], steps: int) -> str:
    """Kills a process in the middle of a run, and brings it back; returns the run's id at its end."""
    victim = process(cotrail, name)
    run = begun(cotrail, engine, submit, steps)
    victim.kill()
    victim.wait(10)
    engine.dispose()
    cotrail("up")
    wait_until(lambda: open_questions(engine, run) == 0, "the run is finished")
    return run


def kill_at_each_step(
    cotrail: Cotrail, engine: Engine, worker: str, begin: Callable[[], str], points: Points, places: Iterator[Point]
) -> tuple[str, list[Point]]:
    """Has the worker die at the next of the places at each of its steps, and brings it back, until all is answered.

    Returns the run's id and where it died.
    """
    deaths: list[Point] = []
    points.arm(place := next(places), worker)
    run = begin()
    while open_questions(engine, run):
        wait_until(lambda: points.reached(worker) or not open_questions(engine, run), "it dies or is done")
        if points.reached(worker):
            deaths.append(place)
            points.arm(place := next(places), worker)
            cotrail("up")
    points.disarm()
    cotrail("up")
    return run, deaths


def is_as_undisturbed(engine: Engine, run: str, undisturbed: list[Any]) -> None:
    """Asserts the steps of the undisturbed run: each has one execution that counts, none exists twice, all verify."""
    assert steps_of(engine, run) == undisturbed
    counting = """
        SELECT count(*) FROM steps LEFT JOIN attempts ON step_id = id AND outcome = 'finished'
        WHERE run_id = :run AND attempts.step_id IS NULL
    """
    assert count(engine, run, counting) == 0
    twice = """
        SELECT count(*) FROM (
            SELECT 1 FROM steps JOIN attempts ON step_id = id WHERE run_id = :run AND outcome = 'finished'
            GROUP BY question_id, sequence HAVING count(*) > 1
        ) AS doubled
    """
    assert count(engine, run, twice) == 0
    with engine.connect() as connection:
        assert verify(read_trail(connection, run)).findings == ()
