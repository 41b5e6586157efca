"""cotrail: the local stack with its default settings, from the run's submission to its last answer."""

from collections.abc import Iterable
from statistics import fmean
from typing import Any

import psutil
from sqlalchemy import Engine, func, select

from benchmarks.recorded_prompts import RecordedPrompt, read_prompts, save_prompts
from benchmarks.ways import Job, peak_mib
from cotrail.cli.terminal.following import follow
from cotrail.configuration.settings import settings
from cotrail.models.commands.submission import submit
from cotrail.models.queries.progress import read_progress
from cotrail.models.schema.database import connect
from cotrail.models.schema.tables import questions, runs, steps
from cotrail.systems.registry import find_system
from cotrail.workers.stack.stack import Stack


def measure(job: Job) -> dict[str, Any]:
    """Submit the run, wait for its last answer, and keep the prompts that were sent."""
    prepared, stack = job.prepared(), Stack(settings())
    run = prepared.submission.id
    try:
        stack.up(supervised=False)
        engine = connect(settings().database)
        submit(engine, prepared.submission, prepared.questions, find_system)
        progress = follow(run, stderr=True)
        if not progress.finished:
            raise RuntimeError(f"no question was answered: `cotrail show {run}` says why")
        with engine.connect() as connection:
            kinds = read_progress(connection, run).kinds
        asked = read_prompts(engine, run, prepared.questions)
        save_prompts(job.asked, asked)
        return {
            "seconds": round(_seconds(engine, run), 2),
            "questions": progress.questions,
            "failed": progress.questions - progress.finished,
            "steps": progress.steps,
            "generations": len(asked),
            "slots": settings().generation_slots,
            "seconds_a_kind": {each.kind: round(each.milliseconds / 1000, 1) for each in kinds},
            "prompt_tokens": {kind: _cache(each for each in asked if each.kind == kind) for kind in ("reason", "read")}
            | {"all": _cache(asked)},
            "peak_mib": _peaks(stack),
        }
    finally:
        stack.down()


def _seconds(engine: Engine, run: str) -> float:
    """Seconds from the run's submission to its last step's end, by the database's clock."""
    of_run = steps.c.question_id.in_(select(questions.c.id).where(questions.c.run_id == run))
    began = select(runs.c.created_at).where(runs.c.id == run)
    with engine.connect() as connection:
        ended = connection.execute(select(func.max(steps.c.finished_at)).where(of_run)).scalar_one()
        return float((ended - connection.execute(began).scalar_one()).total_seconds())


def _cache(asked: Iterable[RecordedPrompt]) -> dict[str, Any]:
    """Tokens of the prompts, those of them that were computed, and the share that came from the cache."""
    written = [each.written for each in asked]
    sent = sum(each.prompt_tokens for each in written)
    cached = sum(each.cached_prompt_tokens for each in written)
    return {
        "sent": sent,
        "computed": sent - cached,
        "share_from_cache": round(cached / sent, 4) if sent else None,
        "mean_demonstrations": round(fmean(each.demonstrations for each in written), 2) if written else None,
    }


def _peaks(stack: Stack) -> dict[str, Any]:
    """Peak resident memory of each service's largest process, and the number of its processes."""
    peaks = {}
    for status in stack.status():
        if status.pid is not None:
            service = psutil.Process(status.pid)
            pids = [status.pid, *(child.pid for child in service.children(recursive=True))]
            peaks[status.name] = {"processes": len(pids), "largest": max(peak_mib(pid) for pid in pids)}
    return peaks
