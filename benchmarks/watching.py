"""Following live under load: 50 submitters and 500 followers beside workers whose model and search cost nothing.

`python -m benchmarks.watching [--questions N] [--rounds N] [--output FILE]` starts its own PostgreSQL, Redis, workers,
maintenance and API, all of them and the followers on this machine. Each round measures the workers' steps per second
without followers and with them; a step's event is late by the time from the beginning of the transaction that committed
the step to the event's arrival at a follower.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import psutil
import typer
from msgspec.structs import replace
from sqlalchemy import Engine, exists, select

from benchmarks import machine, workload
from benchmarks.contenders.cotrail import POOL, QUEUES, THREADS, submission
from benchmarks.contenders.workers import alternating, running, wait_until
from benchmarks.servers import own_servers
from cotrail.common.processes import TUNED
from cotrail.core.questions import Question
from cotrail.models.commands.submission import submit
from cotrail.models.schema.database import connect
from cotrail.models.schema.migrating import migrate
from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.tables import questions
from cotrail.systems.registry import find_system

SUBMITTERS = 50
FOLLOWERS = 500
STEPS = 7
"""Steps of a question."""

PATIENCE_SECONDS = 600
MEASURED = ("cotrail", "litestar", "uvicorn", "celery", "redis", "psycopg", "SQLAlchemy")


def main(
    count: Annotated[int, typer.Option("--questions", min=1, help="How many questions each submitter submits.")] = 40,
    rounds: Annotated[int, typer.Option(min=1, help="How often both are measured.")] = 3,
    output: Annotated[Path | None, typer.Option(help="Write the result into this file as well, as JSON.")] = None,
    note: Annotated[str, typer.Option(help="What else the machine did meanwhile.")] = "",
) -> None:
    """Measure both in turn, and print steps per second and how late events are."""
    alone: list[float] = []
    followed: list[dict[str, Any]] = []
    with _service() as (engine, port, api):
        _round(engine, "warm-up", 5)
        for number in range(rounds):
            alone.append(_round(engine, f"alone-{number}", count)["steps_per_second"])
            spent = _cpu_seconds(api)
            followed.append(_round(engine, f"followed-{number}", count, port))
            followed[-1]["cpu"] = _cpu_seconds(api) - spent
    report = _report(alone, followed) | {"questions": SUBMITTERS * count, "note": note}
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


@contextmanager
def _service() -> Iterator[tuple[Engine, int, psutil.Process]]:
    """A whole stack: the engine on its store, the API's port and its process."""
    with own_servers() as settings, socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
        free.close()
        os.environ |= {
            "COTRAIL_HOME": str(settings.home),
            "COTRAIL_DATABASE_URL": settings.database.replace("+psycopg", ""),
            "COTRAIL_BROKER_URL": settings.broker,
        }
        migrate(settings.database)
        engine = connect(settings.database, pool_size=SUBMITTERS)
        workers = alternating("benchmarks.costless_worker", QUEUES, POOL, THREADS, 2)
        with running([*workers, ["cotrail.workers.maintenance"]], TUNED), _api(port) as api:
            yield engine, port, api
        engine.dispose()


@contextmanager
def _api(port: int) -> Iterator[psutil.Process]:
    command = ["uvicorn", "cotrail.api.app:application", "--factory", "--port", str(port), "--no-access-log"]
    with subprocess.Popen([sys.executable, "-m", *command, "--log-level", "warning"]) as process:
        try:
            wait_until(lambda: _listens(port))
            yield psutil.Process(process.pid)
        finally:
            process.terminate()


def _cpu_seconds(process: psutil.Process) -> float:
    return float(sum(process.cpu_times()[:2]))


def _listens(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


def _round(engine: Engine, name: str, count: int, port: int | None = None) -> dict[str, Any]:
    """Have all submitters submit at once, and wait for the last answer; port: of the API, to follow it meanwhile."""
    runs = [f"{name}-{number}" for number in range(SUBMITTERS)]
    began = time.monotonic()
    with ThreadPoolExecutor(SUBMITTERS) as pool:
        list(pool.map(lambda run: _submit(engine, run, count), runs))
    told: dict[str, Any] = {}
    if port is None:
        wait_until(lambda: not _open(engine), PATIENCE_SECONDS)
        seconds = time.monotonic() - began
    else:
        command = [sys.executable, "-m", "benchmarks.watchers", str(port), str(FOLLOWERS // SUBMITTERS), *runs]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as followers:
            wait_until(lambda: not _open(engine), PATIENCE_SECONDS)
            seconds = time.monotonic() - began
            told = json.loads(followers.communicate(timeout=PATIENCE_SECONDS)[0])
        told["wrong"] += told.pop("steps") != count * STEPS
    return {"steps_per_second": SUBMITTERS * count * STEPS / seconds, **told}


def _submit(engine: Engine, run: str, count: int) -> None:
    asked = [Question(id=f"q{number}", text=workload.question(hash((run, number)))) for number in range(count)]
    submit(engine, replace(submission(), id=run), asked, find_system)


def _open(engine: Engine) -> bool:
    with engine.begin() as connection:
        return bool(connection.execute(select(exists().where(questions.c.status == QuestionStatus.OPEN))).scalar_one())


def _report(alone: list[float], followed: list[dict[str, Any]]) -> dict[str, Any]:
    late = sorted(each for told in followed for each in told["late"])
    beside = [told["steps_per_second"] for told in followed]
    return {
        "command": machine.command("benchmarks.watching"),
        "submitters": SUBMITTERS,
        "followers": FOLLOWERS,
        "errors": {name: sum(told[name] for told in followed) for name in ("broken", "wrong")},
        "events": sum(told["events"] for told in followed),
        "events_timed": len(late),
        "api_cpu_milliseconds_per_event": round(
            1000 * sum(told["cpu"] for told in followed) / max(1, sum(told["events"] for told in followed)), 3
        ),
        "seconds_until_all_are_there": max(round(told["there"], 1) for told in followed),
        "milliseconds_late": {
            f"p{share:g}": round(late[min(len(late) - 1, int(len(late) * share / 100))], 1) for share in (50, 99, 99.9)
        },
        "steps_per_second": {"alone": [round(each, 1) for each in alone], "followed": [round(x, 1) for x in beside]},
        "fall": round(1 - median(beside) / median(alone), 3),
        "machine": machine.describe(),
        "versions": machine.versions(*MEASURED),
    }


if __name__ == "__main__":
    typer.run(main)
