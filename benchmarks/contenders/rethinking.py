"""cotrail: Rethinking with Retrieval, one question at a time, over a slow search."""

import json
import sys
import time
from statistics import median

import msgspec
from msgspec.structs import replace
from sqlalchemy import Engine, select

from benchmarks.contenders import cotrail
from benchmarks.contenders.workers import running, wait_until, worker
from benchmarks.slow_search_worker import FACTS, SECONDS
from cotrail.common.processes import TUNED
from cotrail.configuration.settings import settings
from cotrail.core.questions import Question
from cotrail.engines.engine_kinds import find_engine
from cotrail.models.commands.submission import Submission, submit
from cotrail.models.schema.database import connect
from cotrail.models.schema.migrating import migrate
from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.tables import questions
from cotrail.systems.registry import find_system

APP = "benchmarks.slow_search_worker"
CHAINS = 10
QUESTIONS = 5
MODELS = {"embedders": '{"default": 0.5}', "entailers": '{"default": {"entailment": 0.9}}'}
"""Scripts of models that give the same scores to all sentences."""


def main(workers: int) -> None:
    """Ask one question after another with `workers` single-threaded retrieval workers; print the median wall time."""
    migrate(settings().database)
    engine = connect(settings().database)
    run = submission()
    others = worker(APP, "reason,read,embed,entail", "threads", 16)
    searching = [worker(APP, "retrieve", "threads", 1, number) for number in range(workers)]
    with running([others, *searching, ["cotrail.workers.maintenance"]], TUNED):
        seconds = [_ask(engine, replace(run, id=f"run-{number}")) for number in range(QUESTIONS + 1)][1:]
    print(json.dumps({"look_ups": CHAINS * FACTS, "look_up_seconds": SECONDS, "seconds": round(median(seconds), 3)}))


def submission() -> Submission:
    """A run of rethinking with scripted embedder and entailer, over the slow search."""
    home = settings().home
    for kind, script in MODELS.items():
        (home / f"{kind}.json").write_text(script)
    tables = (f'[{kind}.same]\nengine = "scripted"\npath = "{kind}.json"\n' for kind in MODELS)
    settings().catalogue_path.write_text("".join(tables))
    spec = find_system("rethinking")
    chosen = spec.settings(chains=CHAINS, task="temporal", knowledge=("corpus",))
    base = cotrail.submission()
    path = settings().catalogue_path
    weighed = {
        "embedder": find_engine(path, "embedder", "same").identity(),
        "entailer": find_engine(path, "entailer", "same").identity(base.binding.model),
    }
    return replace(
        base,
        system=spec.name,
        system_version=spec.version,
        settings=msgspec.to_builtins(chosen),
        binding=replace(base.binding, **weighed),
        embedder_name="same",
        entailer_name="same",
    )


def _ask(engine: Engine, run: Submission) -> float:
    began = time.monotonic()
    submit(engine, run, [Question(id="q", text="Where was the builder born?")], find_system)
    wait_until(lambda: _is_finished(engine, run.id))
    return time.monotonic() - began


def _is_finished(engine: Engine, run: str) -> bool:
    with engine.begin() as connection:
        status = connection.execute(select(questions.c.status).where(questions.c.run_id == run)).scalar_one()
    return bool(status == QuestionStatus.FINISHED)


if __name__ == "__main__":
    main(int(sys.argv[1]))
