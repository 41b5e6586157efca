"""Runs: which there are, how each was configured, and how its questions stand."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, RowMapping, func, select

from cotrail.errors import InputError, UnknownNameError
from models.records.blockage import stopped_runs
from models.schema.states import QuestionStatus, RunState
from models.schema.tables import questions, runs

LATEST = "latest"
"""The name that stands for the run submitted last."""


class RunRecord(Struct, frozen=True, kw_only=True):
    """A row of `runs`: the configuration of a run, and its state."""

    id: str
    created_at: datetime
    experiment_id: str | None
    cell: str | None
    reuse: bool
    state: str
    priority: int
    size: int
    origin: str | None
    forked_at: str | None
    system: str
    system_version: int
    settings: dict[str, Any]
    dataset: str
    corpus: str | None
    corpus_revision: str
    knowledge: dict[str, str]
    model_name: str
    model: str
    embedder_name: str
    embedder: str
    entailer_name: str
    entailer: str
    profile: str
    temperature: float
    seed: int
    demonstrations: dict[str, str]
    provenance: dict[str, Any]
    opened: str
    digest: str | None


class RunSummary(Struct, frozen=True, kw_only=True):
    """A run and the number of its questions by status.

    stopped: whether one cause blocks it as a whole (`models.records.blockage`).
    """

    run: RunRecord
    questions: dict[str, int]
    stopped: bool

    @property
    def standing(self) -> str:
        """See `standing`."""
        return standing(self.run.state, self.questions, stopped=self.stopped)


def standing(state: str, counts: dict[str, int], *, stopped: bool) -> str:
    """Return a run's state in one word: running, paused, blocked, finished, cancelled or pruned."""
    if state in (RunState.CANCELLED, RunState.PRUNED):
        return str(state)
    if counts[QuestionStatus.OPEN] and not stopped:
        return "paused" if state == RunState.PAUSED else "running"
    return "blocked" if counts[QuestionStatus.BLOCKED] else "finished"


def resolve_run(connection: Connection, given: str) -> str:
    """Return the id of a run given by its id, the beginning of its id, or `latest`.

    Raises UnknownNameError, and InputError where several ids begin so.
    """
    if not given:  # every id begins so
        raise UnknownNameError("the run's id is empty; `cotrail runs` lists them")
    newest = select(runs.c.id).order_by(runs.c.created_at.desc(), runs.c.id.desc())
    if given == LATEST:
        found = connection.execute(newest.limit(1)).scalars().all()
    else:
        found = connection.execute(newest.where(runs.c.id.startswith(given, autoescape=True)).limit(6)).scalars().all()
    if given in found or len(found) == 1:
        return given if given in found else found[0]
    if found:
        raise InputError(f"{given!r} begins the ids of several runs ({', '.join(found)}); write more of it")
    raise UnknownNameError(f"there is no run {given!r}; `cotrail runs` lists them")


def list_runs(connection: Connection) -> list[RunSummary]:
    """Return all runs, the newest first."""
    counts: dict[str, dict[str, int]] = {}
    grouped = select(questions.c.run_id, questions.c.status, func.count()).group_by(
        questions.c.run_id, questions.c.status
    )
    for run_id, status, count in connection.execute(grouped):
        counts.setdefault(run_id, no_questions())[status] = count
    rows = connection.execute(select(runs).order_by(runs.c.created_at.desc(), runs.c.id.desc())).mappings().all()
    stopped = stopped_runs(connection)
    return [
        RunSummary(run=_record(row), questions=counts.get(row["id"], no_questions()), stopped=row["id"] in stopped)
        for row in rows
    ]


def read_run(connection: Connection, run_id: str) -> RunRecord:
    """Return the row of a run that exists."""
    return _record(connection.execute(select(runs).where(runs.c.id == run_id)).mappings().one())


def no_questions() -> dict[str, int]:
    """Return a count of 0 for each status of questions."""
    return dict.fromkeys((str(status) for status in QuestionStatus), 0)


def _record(row: RowMapping) -> RunRecord:
    return msgspec.convert(dict(row), RunRecord)
