"""cotrail: a run that is submitted once; only its workers and maintenance are started again."""

import json
import sys

from sqlalchemy import Engine, Select, func, select

from benchmarks import workload
from benchmarks.contenders.cotrail import POOL, QUEUES, is_open, submission
from benchmarks.contenders.workers import PATIENCE_SECONDS, running, wait_until, worker
from benchmarks.killed import AT_ONCE
from cotrail.common.processes import TUNED
from cotrail.configuration.settings import settings
from cotrail.core.questions import Question
from cotrail.models.commands.submission import submit
from cotrail.models.schema.database import connect
from cotrail.models.schema.migrating import migrate
from cotrail.models.schema.tables import questions, runs
from cotrail.systems.registry import find_system

APP = "benchmarks.costless_worker"


def main(count: int) -> None:
    """Submit the run unless it is there, and have workers answer it."""
    migrate(settings().database)
    engine = connect(settings().database)
    if not _counted(engine, select(func.count()).select_from(runs)):
        asked = [Question(id=f"q{number}", text=workload.question(number)) for number in range(count)]
        submit(engine, submission(), asked, find_system)
    workers = [worker(APP, queues, POOL, AT_ONCE) for queues in QUEUES]
    with running([*workers, ["cotrail.workers.maintenance"]], TUNED):
        wait_until(lambda: not is_open(engine), seconds=PATIENCE_SECONDS)
    right = select(func.count()).where(questions.c.answer == workload.ANSWER)
    print(json.dumps({"answered": _counted(engine, right)}))


def _counted(engine: Engine, query: Select[int]) -> int:
    with engine.begin() as connection:
        return connection.execute(query).scalar_one()


if __name__ == "__main__":
    main(int(sys.argv[1]))
