"""Reading runs: which there are, how they were configured, and how far they are."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, RowMapping, and_, bindparam, cast, exists, func, literal_column, select

from cotrail.errors import InputError, UnknownNameError
from models.queries.outages import Outage, read_outages
from models.records.blockage import Blockage, read_blockage, stopped_runs
from models.schema.states import AttemptOutcome, QuestionStatus, RunState, StepState
from models.schema.tables import attempts, questions, runs, steps

LATEST = "latest"
"""The name for the run that was submitted last."""

_REPEATED = (AttemptOutcome.EXPIRED, AttemptOutcome.RETRIED, AttemptOutcome.RELEASED, AttemptOutcome.UNAVAILABLE)


class RunRecord(Struct, frozen=True, kw_only=True):
    """A run as it was submitted, and what a person wants of it now."""

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
    """A run and how many of its questions stand where.

    stopped: whether one cause blocks it as a whole (`models.records.blockage`).
    """

    run: RunRecord
    questions: dict[str, int]
    stopped: bool

    @property
    def standing(self) -> str:
        """One word for the run as a whole."""
        return standing(self.run.state, self.questions, stopped=self.stopped)


class StepCounts(Struct, frozen=True, kw_only=True):
    """The steps of one kind in a run.

    adopted: those of them whose result another run computed, tokens and time included.
    due: those of open questions that a worker could take now; busy: some worker holds a step, of any kind and run.
    under_way: those of open questions that are ready or running.
    """

    kind: str
    waiting: int
    ready: int
    blocked: int
    running: int
    finished: int
    failed: int
    due: int
    under_way: int
    busy: bool
    adopted: int
    prompt_tokens: int
    cached_prompt_tokens: int
    generated_tokens: int
    milliseconds: float

    @property
    def done(self) -> int:
        """Those that will not change any more."""
        return self.finished + self.failed


class Progress(Struct, frozen=True, kw_only=True):
    """How far a run is; `seconds` lie between its first step's start and its last one's end."""

    run: str
    state: str
    questions: dict[str, int]
    kinds: tuple[StepCounts, ...]
    seconds: float
    done_in_finished: int
    """How many steps the finished questions took."""
    outages: tuple[Outage, ...] = ()
    """What is away and holds the run's steps back."""
    blockage: Blockage | None = None
    """What no further questions are admitted for until a person has mended it."""

    @property
    def stopped(self) -> bool:
        """Whether the run goes no further by itself: one cause blocks it, and what was under way has ended."""
        return self.blockage is not None and not any(counts.under_way for counts in self.kinds)

    @property
    def total(self) -> int:
        """All questions."""
        return sum(self.questions.values())

    @property
    def open(self) -> int:
        """The questions that steps are still to come for."""
        return self.questions[QuestionStatus.OPEN]

    @property
    def steps(self) -> int:
        """All steps that are done."""
        return sum(counts.done for counts in self.kinds)

    @property
    def standing(self) -> str:
        """One word for the run as a whole."""
        return standing(self.state, self.questions, stopped=self.stopped)

    def tokens(self, name: str) -> int:
        """The sum over all kinds of `prompt_tokens`, `cached_prompt_tokens` or `generated_tokens`."""
        return sum(getattr(counts, name) for counts in self.kinds)


class Reason(Struct, frozen=True, kw_only=True):
    """Why questions failed or are blocked, the first few of them named."""

    status: str
    type: str
    message: str
    questions: int
    examples: tuple[str, ...]


def standing(state: str, counts: dict[str, int], *, stopped: bool) -> str:
    """One word for a run: running, paused, blocked, finished, cancelled or pruned."""
    if state in (RunState.CANCELLED, RunState.PRUNED):
        return str(state)
    if counts[QuestionStatus.OPEN] and not stopped:
        return "paused" if state == RunState.PAUSED else "running"
    return "blocked" if counts[QuestionStatus.BLOCKED] else "finished"


def resolve_run(connection: Connection, given: str) -> str:
    """The id of the run that is meant: by its id, the beginning of its id, or `latest`."""
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
    """All runs, the newest first."""
    counts: dict[str, dict[str, int]] = {}
    grouped = select(questions.c.run_id, questions.c.status, func.count()).group_by(
        questions.c.run_id, questions.c.status
    )
    for run_id, status, count in connection.execute(grouped):
        counts.setdefault(run_id, _no_questions())[status] = count
    rows = connection.execute(select(runs).order_by(runs.c.created_at.desc(), runs.c.id.desc())).mappings().all()
    stopped = stopped_runs(connection)
    return [
        RunSummary(run=_record(row), questions=counts.get(row["id"], _no_questions()), stopped=row["id"] in stopped)
        for row in rows
    ]


def read_run(connection: Connection, run_id: str) -> RunRecord:
    """A run's configuration."""
    return _record(connection.execute(select(runs).where(runs.c.id == run_id)).mappings().one())


def read_progress(connection: Connection, run_id: str) -> Progress:
    """How far a run is."""
    statuses = select(questions.c.status, func.count()).where(questions.c.run_id == run_id)
    counts = _no_questions()
    for status, count in connection.execute(statuses.group_by(questions.c.status)):
        counts[status] = count
    rows = connection.execute(_STEPS, {"run": run_id}).mappings().all()
    began = min((row["began"] for row in rows if row["began"]), default=None)
    ended = max((row["ended"] for row in rows if row["ended"]), default=None)
    return Progress(
        run=run_id,
        state=connection.execute(select(runs.c.state).where(runs.c.id == run_id)).scalar_one(),
        questions=counts,
        kinds=tuple(StepCounts(**{name: row[name] for name in StepCounts.__struct_fields__}) for row in rows),
        seconds=(ended - began).total_seconds() if began and ended else 0.0,
        done_in_finished=sum(row["in_finished"] for row in rows),
        outages=read_outages(connection, run_id),
        blockage=read_blockage(connection, run_id),
    )


def read_standings(connection: Connection, experiment_id: str) -> dict[str, dict[str, int]]:
    """How many questions of each of the experiment's runs stand where, by the run's id."""
    query = (
        select(questions.c.run_id, questions.c.status, func.count())
        .join_from(questions, runs, questions.c.run_id == runs.c.id)
        .where(runs.c.experiment_id == experiment_id)
        .group_by(questions.c.run_id, questions.c.status)
    )
    standings: dict[str, dict[str, int]] = {}
    for run_id, status, number in connection.execute(query):
        standings.setdefault(run_id, _no_questions())[status] = number
    return standings


def is_complete(counts: Mapping[str, int]) -> bool:
    """Whether every question of a run is finished or failed; only then do its results count."""
    return sum(counts.values()) == counts[QuestionStatus.FINISHED] + counts[QuestionStatus.FAILED]


def count_steps(connection: Connection, experiment_id: str) -> tuple[int, int]:
    """How many of the experiment's steps are done, and how many of these were adopted from another run."""
    done = select(func.count(), func.count(steps.c.adopted_from)).join_from(steps, runs, steps.c.run_id == runs.c.id)
    over = steps.c.state.in_([StepState.FINISHED, StepState.FAILED])
    row = connection.execute(done.where(runs.c.experiment_id == experiment_id, over)).one()
    return row[0], row[1]


def read_reasons(connection: Connection, run_id: str) -> list[Reason]:
    """Why questions of the run failed or are blocked, the most frequent reason first."""
    kind, message = questions.c.reason["type"].astext, questions.c.reason["message"].astext
    keys = func.array_agg(questions.c.key)
    query = (
        select(questions.c.status, kind, message, func.count().label("number"), keys)
        .where(questions.c.run_id == run_id, questions.c.reason.is_not(None), kind.is_not(None))
        .group_by(questions.c.status, kind, message)
        .order_by(literal_column("number").desc(), message)
    )
    return [
        Reason(status=status, type=type_, message=text, questions=number, examples=tuple(sorted(named)[:3]))
        for status, type_, text, number, named in connection.execute(query)
    ]


def count_repeated(connection: Connection, run_id: str) -> dict[str, int]:
    """How many executions didn't count, by why; empty where every step was executed once."""
    query = (
        select(attempts.c.outcome, func.count())
        .join_from(attempts, steps, attempts.c.step_id == steps.c.id)
        .where(steps.c.run_id == run_id, attempts.c.outcome.in_(_REPEATED))
        .group_by(attempts.c.outcome)
        .order_by(attempts.c.outcome)
    )
    return {str(outcome): number for outcome, number in connection.execute(query)}


def _no_questions() -> dict[str, int]:
    return dict.fromkeys((str(status) for status in QuestionStatus), 0)


def _record(row: RowMapping) -> RunRecord:
    return msgspec.convert(dict(row), RunRecord)


def _total(name: str) -> Any:
    return func.coalesce(func.sum(steps.c[name]), 0)


def _count(*where: Any) -> Any:
    return func.count().filter(and_(*where))


def _columns() -> Sequence[Any]:
    other = steps.alias("other")
    of_open = questions.c.status == QuestionStatus.OPEN
    to_come = steps.c.state.in_([StepState.WAITING, StepState.READY])
    over = steps.c.state.in_([StepState.FINISHED, StepState.FAILED])
    return (
        steps.c.kind,
        *(_count(steps.c.state == state).label(str(state)) for state in StepState),
        _count(to_come, of_open, func.coalesce(steps.c.not_before <= func.now(), True)).label("due"),
        _count(steps.c.state.in_([StepState.READY, StepState.RUNNING]), of_open).label("under_way"),
        exists().where(other.c.state == StepState.RUNNING).label("busy"),
        *(
            cast(_total(name), steps.c[name].type).label(name)
            for name in ("prompt_tokens", "cached_prompt_tokens", "generated_tokens", "milliseconds")
        ),
        func.count(steps.c.adopted_from).label("adopted"),
        func.min(steps.c.started_at).label("began"),
        func.max(steps.c.finished_at).label("ended"),
        _count(over, questions.c.status == QuestionStatus.FINISHED).label("in_finished"),
    )


_STEPS = (
    select(*_columns())
    .join_from(steps, questions, steps.c.question_id == questions.c.id)
    .where(steps.c.run_id == bindparam("run"))
    .group_by(steps.c.kind)
    .order_by(steps.c.kind)
)
