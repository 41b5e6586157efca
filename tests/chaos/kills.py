"""Search-in-the-Chain by a real language model, while `kill -9` hits each worker in turn.

`python -m tests.chaos.kills --questions 4` runs it twice, undisturbed and under kills, and compares the two.
"""

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field
from rich.console import Console
from rich.table import Table
from sqlalchemy import Engine, text

from cotrail.audit.verification import verify
from cotrail.configuration.settings import Settings
from cotrail.errors import CotrailError
from cotrail.models.queries.traces import rebuild_prompt
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.database import connect
from cotrail.workers.stack.process import Processes
from tests.chaos import checks
from tests.chaos.schedule import WORKERS
from tests.conftest import wait_until
from tests.faults import inner
from tests.faults.inner import executions
from tests.faults.stacked import SAMPLE, Cotrail, count, finished_steps, open_questions, stacked, steps_of

SECONDS = 3600
"""Seconds that either run may take, and that may pass without a finished step."""

VARIABLES = {"COTRAIL_MODEL": "smollm2-135m", "COTRAIL_MAX_ATTEMPTS": "1000"}

RUN = """
system = "searchain"
dataset = "{dataset}"
questions = "{questions}"
limit = {limit}
corpus = "trial"
model = "smollm2-135m"
profile = "deterministic"

[settings]
rounds = 3
max_chain_tokens = 96
max_final_tokens = 48
"""

WRITING = "SELECT count(*) FROM steps WHERE run_id = :run AND state = 'running' AND kind IN ('reason', 'read')"

UNEQUAL = ("cached_prompt_tokens",)
"""What a result may tell otherwise: how much of its prompt the engine had read before."""

Steps = list[tuple[Any, ...]]


class Side(Struct, kw_only=True):
    """One of the two runs.

    steps, kills, attempts: how many of each kind, of each worker, with each outcome; prompts: how many were rebuilt.
    """

    run: str
    seconds: float
    steps: dict[str, int] = {}
    attempts: dict[str, int] = {}
    executions: int = 0
    prompts: int = 0
    kills: dict[str, int] = {}


class Trial(Struct, kw_only=True):
    """The two runs, how they differ, and what else is wrong."""

    questions: int
    undisturbed: Side
    killed: Side
    differences: list[str]
    wrong: list[str] = field(default_factory=list)


def trial(questions: Path | None, limit: int) -> Trial:
    """Asks the first questions of a HotpotQA file, or of the sample, once undisturbed and once under kills."""
    home = Path(tempfile.mkdtemp(prefix="cs-"))
    try:
        with stacked(home, VARIABLES | inner.environment()) as cotrail:
            cotrail("index", str(questions or SAMPLE / "corpus.jsonl"), "--name", "trial")
            cotrail("up")
            engine = connect(Settings(home=home, database_url=None).database)
            try:
                return _compare(home, cotrail, engine, _file(home, questions, limit))
            finally:
                engine.dispose()
    finally:
        shutil.rmtree(home)


def _file(home: Path, questions: Path | None, limit: int) -> Path:
    """The run as a file."""
    file, dataset = home / "trial.toml", "hotpotqa" if questions else "jsonl"
    asked = (questions or SAMPLE / "questions.jsonl").absolute()
    file.write_text(RUN.format(dataset=dataset, questions=asked, limit=limit))
    return file


def _compare(home: Path, cotrail: Cotrail, engine: Engine, file: Path) -> Trial:
    undisturbed = _carried_out(home, cotrail, engine, file, under_kills=False)
    killed = _carried_out(home, cotrail, engine, file, under_kills=True)
    asked = count(engine, undisturbed.run, "SELECT count(*) FROM questions WHERE run_id = :run")
    found = Trial(
        questions=asked,
        undisturbed=undisturbed,
        killed=killed,
        differences=_differences(engine, undisturbed.run, killed.run),
    )
    done = executions.read(inner.folder(home) / "executions")
    with engine.begin() as connection:
        wrong = [
            checks.every_question_finished(connection),
            checks.each_step_in_effect_once(connection),
            checks.every_attempt_ended(connection),
            checks.everything_sealed(connection),
            checks.attempts_account_for_executions(connection, done),
        ]
    wrong += [audited(engine, side.run) + rebuilt(engine, side) for side in (undisturbed, killed)]
    found.wrong = [line for each in wrong for line in checks.shown(each)]
    return found


def _carried_out(home: Path, cotrail: Cotrail, engine: Engine, file: Path, *, under_kills: bool) -> Side:
    """Submits the run and waits for its end."""
    began = time.monotonic()
    run = str(json.loads(cotrail("submit", str(file), "--json").splitlines()[-1])["run"])
    kills = kill_in_turn(home, cotrail, lambda: _goes_on(engine, run)) if under_kills else {}
    unsealed = "SELECT count(*) FROM runs WHERE id = :run AND digest IS NULL"
    wait_until(lambda: count(engine, run, unsealed) == 0, "the run is finished and sealed", SECONDS)
    return Side(
        run=run,
        seconds=time.monotonic() - began,
        steps=dict(Counter(kind for _, _, kind, *_ in steps_of(engine, run))),
        attempts=_attempts(engine, run),
        executions=_executions(home, engine, run),
        kills=kills,
    )


def kill_in_turn(home: Path, cotrail: Cotrail, goes_on: Callable[[], bool]) -> dict[str, int]:
    """Kills one worker after another as long as the work goes on; returns how often each."""
    kills, names = dict.fromkeys(WORKERS, 0), cycle(WORKERS)
    while goes_on():
        name = next(names)
        victim = Processes(home).find(name)
        assert victim is not None, f"{name} ended by itself"
        victim.kill()
        victim.wait(10)
        kills[name] += 1
        cotrail("up")
    return kills


def _goes_on(engine: Engine, run: str) -> bool:
    """Waits until a further step is finished and the model is writing; returns False if the run is over."""
    before = finished_steps(engine, run)

    def is_over() -> bool:
        return open_questions(engine, run) == 0

    def is_at_work() -> bool:
        return finished_steps(engine, run) > before and count(engine, run, WRITING) > 0

    wait_until(lambda: is_over() or is_at_work(), "a further step is finished", SECONDS)
    return not is_over()


def _attempts(engine: Engine, run: str) -> dict[str, int]:
    query = (
        "SELECT outcome, count(*) FROM attempts JOIN steps ON id = step_id WHERE run_id = :run GROUP BY 1 ORDER BY 1"
    )
    with engine.begin() as connection:
        return {row[0]: row[1] for row in connection.execute(text(query), {"run": run})}


def _executions(home: Path, engine: Engine, run: str) -> int:
    with engine.begin() as connection:
        own = set(connection.execute(text("SELECT id FROM steps WHERE run_id = :run"), {"run": run}).scalars())
    return sum(each.step_id in own for each in executions.read(inner.folder(home) / "executions"))


def _differences(engine: Engine, undisturbed: str, killed: str) -> list[str]:
    """How the steps and the answers of the two runs differ."""
    expected, found = _steps(engine, undisturbed), _steps(engine, killed)
    steps = [
        f"question {key}: {checks.difference(expected.get(key, []), found.get(key, []))}"
        for key in sorted(expected.keys() | found.keys())
        if expected.get(key) != found.get(key)
    ]
    answers, now = _answers(engine, undisturbed), _answers(engine, killed)
    return steps + [f"question {key} has another answer" for key, answer in answers.items() if now.get(key) != answer]


def _steps(engine: Engine, run: str) -> checks.Steps:
    """The steps by question, without what a result may tell otherwise."""
    steps: Steps = []
    for *before, result, failure, state, sentence, paragraphs in steps_of(engine, run):
        same = {name: value for name, value in result.items() if name not in UNEQUAL} if result else result
        steps.append((*before, same, failure, state, sentence, paragraphs))
    return checks.by_question(steps)


def _answers(engine: Engine, run: str) -> dict[str, Any]:
    query = "SELECT key, answer, sentences, collected, weighing FROM questions WHERE run_id = :run"
    with engine.begin() as connection:
        return {key: tuple(answer) for key, *answer in connection.execute(text(query), {"run": run})}


def audited(engine: Engine, run: str) -> list[str]:
    """What doesn't verify of a run."""
    with engine.connect() as connection:
        found = verify(read_trail(connection, run))
    return [str(finding) for finding in found.findings] + ([] if found.closed else [f"run {run} isn't sealed"])


def rebuilt(engine: Engine, side: Side) -> list[str]:
    """The prompts of a run that aren't rebuilt as they were; counts the others."""
    wrong = []
    for key, sequence, _, _, _, result, *_ in steps_of(engine, side.run):
        if not result or "prompt_digest" not in result:
            continue
        try:
            with engine.connect() as connection:
                prompt = rebuild_prompt(connection, side.run, key, sequence)
        except CotrailError as error:
            wrong.append(str(error))
            continue
        if hashlib.sha256(prompt.encode()).hexdigest() == result["prompt_digest"]:
            side.prompts += 1
        else:
            wrong.append(f"the prompt of step {sequence} of question {key}, run {side.run}, is another one")
    return wrong


def main() -> None:
    """Exits with 1 if the runs differ or anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.kills", description="A real model under kills.")
    parser.add_argument("--questions", type=int, default=12, help="how many questions each run asks")
    parser.add_argument("--hotpotqa", type=Path, help="a file of HotpotQA's, whose paragraphs are the corpus")
    parser.add_argument("--output", type=Path, help="a JSON file for the report")
    arguments = parser.parse_args()
    found, console = trial(arguments.hotpotqa, arguments.questions), Console(highlight=False)
    _show(console, found)
    if arguments.output:
        arguments.output.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))
    if found.differences or found.wrong:
        console.print(*found.differences, *found.wrong, sep="\n", markup=False)
        sys.exit(1)


def _show(console: Console, found: Trial) -> None:
    table = Table("", "undisturbed", "under kills", box=None)
    for name in ("steps", "kills", "executions", "attempts", "prompts", "seconds"):
        table.add_row(name, *(_told(getattr(side, name)) for side in (found.undisturbed, found.killed)))
    console.print(f"{found.questions} questions", table, sep="\n")
    console.print(f"{len(found.differences) or 'no'} differences, {len(found.wrong) or 'nothing'} wrong")


def _told(value: dict[str, int] | float) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{number} {name}" for name, number in value.items()) or "none"
    return f"{value:.0f}"


if __name__ == "__main__":
    main()
