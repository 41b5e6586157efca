"""What of a hosted model's limits a run uses through real workers: admission, queues, steps that are given back.

`python -m benchmarks.limits_run [--workers N]... [--output FILE]` starts its own PostgreSQL and Redis, a scripted
server (`benchmarks/limited_server.py`), maintenance and generation workers. A question is one step of its model.
"""

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import tomli_w
import typer
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table
from sqlalchemy import func, select

from benchmarks import machine
from benchmarks.contenders.cotrail import submission
from benchmarks.contenders.workers import running, worker
from benchmarks.limited_account import MINUTE, Account, Script, Seen
from benchmarks.limited_server import LimitedServer
from benchmarks.limits import WARM_UP_SECONDS
from benchmarks.servers import own_servers
from cotrail.common.humanize import percent
from cotrail.configuration.settings import Settings
from cotrail.core.questions import Question
from cotrail.engines.language_models.catalogue import find_model, identity
from cotrail.models.commands.submission import submit
from cotrail.models.schema.database import connect
from cotrail.models.schema.migrating import migrate
from cotrail.models.schema.tables import attempts
from cotrail.systems.registry import find_system

MODEL = "limited"

errors = Console(stderr=True)

REQUESTS = 300
"""A minute, which workers on two cores have no trouble with."""

SCRIPT = Script(limits={"requests": REQUESTS}, answers=(5.0, 15.0))


def main(
    workers: Annotated[list[int], typer.Option(help="How many generation workers.")] = [1, 4],  # noqa: B006
    seconds: Annotated[float, typer.Option(min=1, help="How long each case is counted.")] = 60.0,
    output: Annotated[Path | None, typer.Option(help="Write the result into this file as well, as JSON.")] = None,
) -> None:
    """Measure each number of workers in turn; print what was used and refused."""
    measured = []
    for number in workers:
        measured.append(asyncio.run(measure(number, seconds)))
        errors.print_json(data=measured[-1], indent=None)
    report = {
        "command": machine.command("benchmarks.limits_run"),
        "seconds": seconds,
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "load": [round(load, 1) for load in os.getloadavg()],
        "measured": measured,
        "machine": machine.describe(),
        "versions": machine.versions("celery", "redis", "httpx2", "psycopg"),
    }
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    _print(measured)


async def measure(workers: int, seconds: float) -> dict[str, Any]:
    """One number of workers: what was used of the limit, and the share of requests that was refused."""
    warm_up = WARM_UP_SECONDS + SCRIPT.answers[1]
    account = Account(SCRIPT)
    server = LimitedServer(account)
    url = await server.start()
    with own_servers() as settings, running(_commands(workers), _environment(settings, url)):
        _submit(settings, round(REQUESTS / MINUTE * (warm_up + seconds) * 1.5))
        await asyncio.sleep(warm_up)
        account.seen = Seen()
        await asyncio.sleep(seconds)
        seen, account.seen = account.seen, Seen()
        given_back = _given_back(settings)
    server.close()
    return {
        "workers": workers,
        "used": round(seen.shares(SCRIPT.limits, seconds)["requests"], 4),
        "refused": round(seen.refused_share, 4),
        "requests": seen.answered + seen.refused,
        "most_under_way": seen.most_under_way,
        "given_back": given_back,
    }


def _commands(workers: int) -> list[Sequence[str]]:
    generating = [worker("cotrail.workers.app", "reason,read", "threads", 1, number) for number in range(workers)]
    return [["cotrail.workers.maintenance"], *generating]


def _environment(settings: Settings, url: str) -> dict[str, str]:
    """The environment of the workers, whose model is the server's."""
    table = {
        "engine": "openai",
        "url": url,
        "model": "scripted",
        "context": 100_000,
        "api": "chat",
        "thinks": "no",
        "account": "benchmark",
        "omits": ["stream"],
    }
    settings.catalogue_path.write_text(tomli_w.dumps({"models": {MODEL: table}}))
    migrate(settings.database)
    return {
        "COTRAIL_HOME": str(settings.home),
        "COTRAIL_DATABASE_URL": settings.database,
        "COTRAIL_BROKER_URL": settings.broker,
        "COTRAIL_MODEL": MODEL,
        "PATH": os.environ["PATH"],
    }


def _submit(settings: Settings, questions: int) -> None:
    spec = find_system("no-retrieval")
    pinned = identity(find_model(settings.catalogue_path, MODEL))
    submitted = replace(
        submission(),
        id=MODEL,
        system=spec.name,
        system_version=spec.version,
        settings=msgspec.to_builtins(spec.settings()),
        model_name=MODEL,
        binding=replace(submission().binding, model=pinned, corpora={}),
        served=True,
    )
    engine = connect(settings.database)
    submit(engine, submitted, [Question(id=f"q{n}", text=f"What is town {n}?") for n in range(questions)], find_system)
    engine.dispose()


def _given_back(settings: Settings) -> int:
    """How often a step was given back."""
    engine = connect(settings.database)
    with engine.connect() as connection:
        number = connection.execute(
            select(func.count()).select_from(attempts).where(attempts.c.outcome == "unavailable")
        ).scalar_one()
    engine.dispose()
    return int(number)


def _print(measured: list[dict[str, Any]]) -> None:
    table = Table("workers", "used", "refused", "requests", "most under way", "given back")
    for row in measured:
        used, refused = percent(row["used"]), percent(row["refused"], 2)
        numbers = (row["requests"], row["most_under_way"], row["given_back"])
        table.add_row(str(row["workers"]), used, refused, *map(str, numbers))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
