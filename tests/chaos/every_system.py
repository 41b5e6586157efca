"""Every system in one experiment by a real language model, while `kill -9` hits each worker in turn.

`python -m tests.chaos.every_system --questions 4` asks questions of the sample, or of a file of HotpotQA's. Settings
that bound the work are small, as the model is. Afterwards every question has ended, and each run verifies, replays, and
shows its traces and prompts.
"""

import argparse
import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.table import Table
from sqlalchemy import Engine, text

from cotrail.common.structs import merged
from cotrail.configuration.settings import Settings
from cotrail.models.schema.database import connect
from cotrail.services.runs.repeating import replay
from cotrail.systems.registry import SYSTEMS, find_system
from cotrail.systems.spec import SystemSpec
from tests.chaos.kills import VARIABLES, Side, audited, kill_in_turn, rebuilt
from tests.conftest import wait_until
from tests.faults import inner
from tests.faults.stacked import SAMPLE, Cotrail, stacked

NAME = "every-system"
SECONDS = 14_400
"""Seconds that all of it may take, and that may pass without a finished step."""

STEPS_A_KILL = 20
"""Steps that are finished between two kills."""

BOUNDS = {"tokens": 48, "words": 60, "count": 2, "chains": 3, "samples": 3}
"""Settings by a part of their name, and what they are at most."""
FEW = ("turns", "calls", "rounds", "searches", "steps", "sentences", "researchers", "explored", "hops", "queries")
MOST_OF_FEW = 3

WHOLE = ("context_tokens", "total_tokens", "window_tokens", "thought_tokens")
"""Settings that bound no work."""

BY_SYSTEM: dict[str, dict[str, Any]] = {
    "tool-agent": {"calls": "tagged"},
    "deep-research": {"calls": "tagged"},
    "rethinking": {"knowledge": ["corpus"]},
}
"""What the small model can't do without: it wasn't tuned to call tools, and its machine has no further knowledge."""


class Ended(Struct, frozen=True, kw_only=True):
    """A run at its end; wrong: what doesn't verify, replay or show."""

    cell: str
    questions: int
    failed: int
    steps: int
    prompts: int
    wrong: tuple[str, ...]


class Report(Struct, frozen=True, kw_only=True):
    """All runs, and the kills by worker."""

    questions: int
    seconds: float
    kills: dict[str, int]
    runs: tuple[Ended, ...]


def small(spec: SystemSpec) -> dict[str, Any]:
    """The settings of a system that bound its work, as small as a check needs them."""
    settings = msgspec.to_builtins(spec.settings())
    return merged(_small(settings), BY_SYSTEM.get(spec.name, {}))


def _small(settings: dict[str, Any]) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            chosen[name] = _small(value)
        elif isinstance(value, int) and not isinstance(value, bool) and (most := _most(name)) is not None:
            chosen[name] = min(value, most)
    return {name: value for name, value in chosen.items() if value != {}}


def _most(name: str) -> int | None:
    if name in WHOLE:
        return None
    if any(name.endswith(each) for each in FEW):
        return MOST_OF_FEW
    return next((most for part, most in BOUNDS.items() if name.endswith(part)), None)


def experiment(questions: Path | None, number: int) -> dict[str, Any]:
    """The experiment as its file has it."""
    names = list(dict.fromkeys(spec.name for spec in SYSTEMS if not spec.judges))
    asked = (questions or SAMPLE / "questions.jsonl").absolute()
    files: dict[str, Any] = {"format": "hotpotqa" if questions else "jsonl", "questions": str(asked), "corpus": "trial"}
    return {
        "protocol": "compare",
        "name": NAME,
        "models": ["smollm2-135m"],
        "systems": names,
        "run": {"embedder": "all-minilm-l6-v2", "entailer": "prompted"},
        "settings": {name: given for name in names if (given := small(find_system(name)))},
        "datasets": {"asked": files | {"test_questions": number, "demonstrations": str(SAMPLE / "demonstrations.txt")}},
    }


def trial(questions: Path | None, number: int) -> Report:
    """Runs the experiment under kills, and looks at what became of it."""
    home = Path(tempfile.mkdtemp(prefix="cs-"))
    began = time.monotonic()
    try:
        with stacked(home, VARIABLES | inner.environment()) as cotrail:
            cotrail("index", str(questions or SAMPLE / "corpus.jsonl"), "--name", "trial")
            cotrail("up")
            lines = (f"{key} = {_inline(value)}" for key, value in experiment(questions, number).items())
            (home / "every.toml").write_text("\n".join(lines))
            engine = connect(Settings(home=home, database_url=None).database)
            try:
                kills = _carried_out(home, cotrail, engine)
                runs = tuple(_looked_at(cotrail, engine, cell, run) for cell, run in _runs(cotrail))
            finally:
                engine.dispose()
    finally:
        shutil.rmtree(home)
    return Report(questions=number, seconds=time.monotonic() - began, kills=kills, runs=runs)


def _inline(value: Any) -> str:
    """A value as TOML has it on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)} = {_inline(each)}' for key, each in value.items())}}}"
    return json.dumps(value)


def _carried_out(home: Path, cotrail: Cotrail, engine: Engine) -> dict[str, int]:
    """Runs the experiment to its end, and kills one worker after another; returns how often each."""
    conductor = threading.Thread(target=cotrail, args=("experiment", "run", str(home / "every.toml")))
    conductor.start()
    kills = kill_in_turn(home, cotrail, lambda: _goes_on(engine, conductor))
    conductor.join()
    return kills


def _goes_on(engine: Engine, conductor: threading.Thread) -> bool:
    """Waits until further steps are finished; returns False if the experiment is over."""
    before = _finished(engine)

    def is_over_or_at_work() -> bool:
        return not conductor.is_alive() or _finished(engine) >= before + STEPS_A_KILL

    wait_until(is_over_or_at_work, "further steps are finished", SECONDS)
    return conductor.is_alive()


def _finished(engine: Engine) -> int:
    with engine.begin() as connection:
        return int(connection.execute(text("SELECT count(*) FROM steps WHERE state = 'finished'")).scalar_one())


def _runs(cotrail: Cotrail) -> Iterator[tuple[str, str]]:
    shown = json.loads(cotrail("experiment", "show", NAME, "--json"))
    yield from ((cell, found["run"]) for cell, found in shown["runs"].items())


def _looked_at(cotrail: Cotrail, engine: Engine, cell: str, run: str) -> Ended:
    side = Side(run=run, seconds=0)
    with engine.connect() as connection:
        replayed = replay(connection, run)
        statuses = connection.execute(text("SELECT key, status FROM questions WHERE run_id = :run"), {"run": run}).all()
    wrong = [f"question {key} is {status}" for key, status in statuses if status not in ("finished", "failed")]
    wrong += [f"question {each.key} replays otherwise: {each.divergence}" for each in replayed.diverged]
    wrong += audited(engine, run) + rebuilt(engine, side)
    for key, _ in statuses:
        cotrail("trace", run, key)
    failed = sum(status == "failed" for _, status in statuses)
    return Ended(
        cell=cell,
        questions=len(statuses),
        failed=failed,
        steps=replayed.steps,
        prompts=side.prompts,
        wrong=tuple(wrong),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Exits with 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.every_system", description="Every system under kills.")
    parser.add_argument("--questions", type=int, default=4, help="how many questions each system is asked")
    parser.add_argument("--hotpotqa", type=Path, help="a file of HotpotQA's, whose paragraphs are the corpus")
    parser.add_argument("--output", type=Path, help="a JSON file for the report")
    given = parser.parse_args(arguments)
    found, console = trial(given.hotpotqa, given.questions), Console(highlight=False)
    if given.output:
        given.output.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))
    table = Table("run", "questions", "failed", "steps", "prompts", "wrong", box=None)
    for each in found.runs:
        table.add_row(each.cell, *map(str, (each.questions, each.failed, each.steps, each.prompts, len(each.wrong))))
    console.print(table, f"{sum(found.kills.values())} kills in {found.seconds:.0f} s", sep="\n")
    if wrong := [line for each in found.runs for line in each.wrong]:
        console.print(*wrong, sep="\n", markup=False)
        sys.exit(1)


if __name__ == "__main__":
    main()
