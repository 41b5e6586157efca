"""cotrail: each step is a task of its own, and everything is stored."""

import json
import sys
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import msgspec
import psutil
from sqlalchemy import Engine, exists, func, select

from benchmarks import workload
from benchmarks.contenders import KINDS
from benchmarks.contenders.workers import PATIENCE_SECONDS, alternating, running, wait_until
from cotrail.common.processes import TUNED
from cotrail.configuration.settings import settings
from cotrail.core.binding import Binding
from cotrail.core.demonstrations import AnswerForm
from cotrail.core.questions import Question
from cotrail.data.demonstrations.sets import in_form, read_demonstrations
from cotrail.models.commands.submission import Submission, submit
from cotrail.models.schema.database import connect
from cotrail.models.schema.migrating import migrate
from cotrail.models.schema.states import QuestionStatus, StepState
from cotrail.models.schema.tables import questions, steps
from cotrail.systems.registry import find_system

POOL, THREADS = "threads", 32
QUEUES = ("reason,read", "retrieve")

LOOKS = 20
"""Number of samples of a process's memory that are reported for a measurement."""


def main(count: int, processes: int) -> None:
    """Submit a run with `processes` worker processes running, and wait for its last answer."""
    migrate(settings().database)
    engine = connect(settings().database)
    workers = alternating("benchmarks.costless_worker", QUEUES, POOL, THREADS, processes)
    memory: list[list[int]] = []
    with running([*workers, ["cotrail.workers.maintenance"]], TUNED) as pids:

        def answered() -> bool:
            memory.append([round(psutil.Process(pid).memory_info().rss / 2**20) for pid in pids])
            return not is_open(engine)

        began = time.monotonic()
        submit(
            engine, submission(), [Question(id=f"q{n}", text=workload.question(n)) for n in range(count)], find_system
        )
        wait_until(answered, seconds=PATIENCE_SECONDS)
        seconds = time.monotonic() - began
    with engine.begin() as connection:
        finished = select(func.count()).where(steps.c.state == StepState.FINISHED)
        stored = connection.execute(finished).scalar_one()
    if stored != count * len(KINDS):
        raise RuntimeError(f"{stored} steps are stored, {count * len(KINDS)} were to be")
    described = f"{processes} of {THREADS} {POOL}, maintenance"
    measured = {"steps": stored, "seconds": seconds, "workers": described, "memory_mib": _each(memory)}
    print(json.dumps(measured))


def submission() -> Submission:
    """IRCoT with the bundled demonstrations and four paragraphs a step."""
    spec = find_system("ircot")
    shots = read_demonstrations(Path(str(files("cotrail.sample") / "demonstrations.txt")))
    return Submission(
        id="costless",
        system=spec.name,
        system_version=spec.version,
        settings=msgspec.to_builtins(spec.settings()),
        dataset="jsonl",
        model_name="costless",
        embedder_name="",
        entailer_name="",
        batched=False,
        binding=Binding(model="costless", profile="fast", temperature=0, seed=0, corpora={"costless": "costless"}),
        shots={AnswerForm.COT: shots, AnswerForm.DIRECT: in_form(shots, AnswerForm.DIRECT)},
        provenance={},
    )


def _each(looks: Sequence[Sequence[int]]) -> list[list[int]]:
    """The memory of each process at `LOOKS` evenly spread moments, the last one at the end."""
    chosen = [looks[max(0, (number + 1) * len(looks) // LOOKS - 1)] for number in range(LOOKS)]
    return [list(process) for process in zip(*chosen, strict=True)]


def is_open(engine: Engine) -> bool:
    """Whether a question is left to answer."""
    with engine.begin() as connection:
        still_open = exists().where(questions.c.status == QuestionStatus.OPEN)
        return connection.execute(select(still_open)).scalar_one()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
