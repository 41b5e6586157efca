"""cotrail: every step its own task, everything stored."""

import json
import sys
import time
from importlib.resources import files
from pathlib import Path

import msgspec
from sqlalchemy import Engine, func, select

from benchmarks.contenders import KINDS
from benchmarks.contenders.workers import running, wait_until, worker
from cotrail.actions import Binding
from cotrail.prompting.demonstrations import in_form, read_demonstrations
from cotrail.prompting.prompt import AnswerForm
from cotrail.questions import Question
from cotrail.systems import find_system
from models.database import connect, migrate
from models.submission import Submission, submit
from models.tables import QuestionStatus, StepState, questions, steps
from tasks.settings import settings

POOL, THREADS = "threads", 64
WORKERS = [
    worker("benchmarks.costless", "reason,read", POOL, THREADS),
    worker("benchmarks.costless", "retrieve", POOL, THREADS),
    ["workers.maintenance"],
]


def main(count: int) -> None:
    """Submits a run and waits for its last answer."""
    migrate(settings().database)
    engine = connect(settings().database)
    with running(WORKERS):
        began = time.monotonic()
        submit(engine, submission(), [Question(id=f"q{n}", text=f"Where was builder {n} born?") for n in range(count)])
        wait_until(lambda: not _left(engine), seconds=600)
        seconds = time.monotonic() - began
    with engine.begin() as connection:
        finished = select(func.count()).where(steps.c.state == StepState.FINISHED)
        stored = connection.execute(finished).scalar_one()
    if stored != count * len(KINDS):
        raise RuntimeError(f"{stored} steps are stored, {count * len(KINDS)} were to be")
    print(json.dumps({"steps": stored, "seconds": seconds, "workers": f"2 processes of {THREADS} {POOL}"}))


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
        corpus="costless",
        model_name="costless",
        binding=Binding(model="costless", profile="fast", temperature=0, seed=0, corpus="costless"),
        shots={AnswerForm.COT: shots, AnswerForm.DIRECT: in_form(shots, AnswerForm.DIRECT)},
        provenance={},
    )


def _left(engine: Engine) -> int:
    with engine.begin() as connection:
        still_open = select(func.count()).where(questions.c.status == QuestionStatus.OPEN)
        return connection.execute(still_open).scalar_one()


if __name__ == "__main__":
    main(int(sys.argv[1]))
