"""A power cut in the middle of a long run: `kill -9` of everything at once, then `cotrail up`.

`python -m tests.chaos.power_cut --questions 1000` tells how long the rest took beside what came before.
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil
from msgspec import Struct, field
from rich.console import Console
from sqlalchemy import Engine, text

from cotrail.configuration.settings import Settings
from cotrail.models.schema.database import connect
from cotrail.workers.stack.process import Processes
from cotrail.workers.stack.status import NAMES
from tests.chaos import checks
from tests.chaos.home import Home, made_home
from tests.conftest import wait_until
from tests.faults import inner
from tests.faults.inner import executions
from tests.faults.scripts import sample
from tests.faults.stacked import SAMPLE, Cotrail, open_questions, process, stacked, steps_of, suspended

PART = 0.4
"""The share of the steps that is finished when the power is cut."""

SECONDS = 600
"""Seconds that each part of the run may take."""

VARIABLES = {"COTRAIL_GENERATION_SLOTS": "8"}


Results = set[tuple[int, int]]
"""The steps that have a result, each with the epoch in which it was computed."""


class Cut(Struct, kw_only=True):
    """Work before and after the cut, and what is wrong at the end.

    Before: from the submission to the cut. Up: how long `cotrail up` took, and what was done until it returned. After:
    from its return to the end.
    """

    questions: int
    steps_before: int = 0
    seconds_before: float = 0
    seconds_up: float = 0
    steps_up: int = 0
    steps_after: int = 0
    seconds_after: float = 0
    wrong: list[str] = field(default_factory=list)


def power_cut(questions: int) -> Cut:
    """Runs this many questions with the scripted model and cuts the power once."""
    with made_home("cq-") as home, stacked(home.path, VARIABLES | inner.environment()) as cotrail:
        cotrail("index", str(SAMPLE / "corpus.jsonl"), "--name", "sample")
        cotrail("up")
        engine = connect(Settings(home=home.path, database_url=None).database)
        try:
            return _cut(home, cotrail, engine, questions)
        finally:
            engine.dispose()


def _cut(home: Home, cotrail: Cotrail, engine: Engine, asked: int) -> Cut:
    cut = Cut(questions=asked)
    undisturbed = _undisturbed(home, cotrail, engine)
    per_question = sum(map(len, undisturbed.values())) / len(undisturbed)
    with suspended(process(cotrail, "generation")):  # so that the run isn't over when the command has ended
        run = home.submit(cotrail, "ircot", home.questions(asked // len(sample()) + 1, asked), model="scripted")
    before: Results = set()

    def enough() -> bool:
        before.update(_results(engine, run))
        return len(before) > PART * per_question * asked

    cut.seconds_before = _timed(lambda: wait_until(enough, "a part of the steps is finished", SECONDS))
    kill_everything(home.path)
    engine.dispose()
    cut.seconds_up = _timed(lambda: cotrail("up"))
    already = len(_results(engine, run))
    cut.seconds_after = _timed(
        lambda: wait_until(lambda: open_questions(engine, run) == 0, "the run is finished", SECONDS)
    )
    results = _results(engine, run)
    cut.steps_before, cut.steps_up, cut.steps_after = len(before), already - len(before), len(results) - already
    cut.wrong = [f"step {step} had a result in epoch {epoch}" for step, epoch in sorted(before - results)]
    cut.wrong += _wrong(home, engine, run, undisturbed)
    return cut


def kill_everything(home: Path) -> None:
    """Kills all processes of a stack at once, including PostgreSQL's and Redis's."""
    processes = Processes(home)
    found = [process for name in NAMES if (process := processes.find(name))]
    for each in [*found, *(child for process in found for child in process.children(recursive=True))]:
        with suppress(psutil.NoSuchProcess):
            each.send_signal(signal.SIGKILL)


def _undisturbed(home: Home, cotrail: Cotrail, engine: Engine) -> checks.Steps:
    run = home.submit(cotrail, "ircot", home.questions(1), model="scripted")
    wait_until(lambda: open_questions(engine, run) == 0, "the undisturbed run is finished", SECONDS)
    return checks.by_question(steps_of(engine, run))


def _results(engine: Engine, run: str) -> Results:
    query = text("SELECT id, epoch FROM steps WHERE run_id = :run AND state = 'finished'")
    with engine.begin() as connection:
        return {(step, epoch) for step, epoch in connection.execute(query, {"run": run})}


def _timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _wrong(home: Home, engine: Engine, run: str, undisturbed: checks.Steps) -> list[str]:
    done = executions.read(inner.folder(home.path) / "executions")
    with engine.begin() as connection:
        found = [
            checks.every_question_finished(connection),
            checks.each_step_in_effect_once(connection),
            checks.every_attempt_ended(connection),
            checks.attempts_account_for_executions(connection, done),
            checks.steps_as_undisturbed(engine, run, undisturbed),
        ]
    return [line for wrong in found for line in checks.shown(wrong)]


def main() -> None:
    """Exits with 1 if anything is wrong at the end."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.power_cut", description="A power cut in mid-run.")
    parser.add_argument("--questions", type=int, default=1000, help="how many questions the run asks")
    parser.add_argument("--output", type=Path, help="a JSON file for what was measured")
    arguments = parser.parse_args()
    cut, console = power_cut(arguments.questions), Console(highlight=False)
    if arguments.output:
        arguments.output.write_bytes(msgspec.json.format(msgspec.json.encode(cut), indent=1))
    console.print(
        f"{cut.questions} questions. Before the cut {cut.steps_before} steps in {cut.seconds_before:.1f} s, "
        f"{cut.steps_before / cut.seconds_before:.0f} a second; `cotrail up` took {cut.seconds_up:.1f} s; then "
        f"{cut.steps_after} steps in {cut.seconds_after:.1f} s, {cut.steps_after / cut.seconds_after:.0f} a second"
    )
    if cut.wrong:
        console.print(*cut.wrong, sep="\n", markup=False)
        sys.exit(1)


if __name__ == "__main__":
    main()
