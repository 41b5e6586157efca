"""What waits in the queues, how fast it is carried out, and what holds it back, as far as the store tells.

Each statement is bounded by what is under way, which admission bounds, and by a window of what ended last.
"""

from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import BigInteger, Connection, Numeric, Select, Text, bindparam, cast, func, literal, select, union_all

from cotrail.models.records.projects import in_project
from cotrail.models.schema.service_tables import UNANSWERED, batch_items, batches
from cotrail.models.schema.states import OPEN_BATCHES, AttemptOutcome, DesiredState, QuestionStatus, StepState
from cotrail.models.schema.tables import QUESTION_OPEN, attempts, questions, runs, steps

WINDOW_SECONDS = 120
"""The window over which rates are measured."""

TROUBLE_SECONDS = 900
"""The window of executions that didn't end with a result."""

MOST_ENDED = 5_000
"""The most steps of a run that are counted in the window."""

MOST_RUNS = 200
"""The most runs, the newest ones that haven't ended or were begun last, whose ended steps are counted."""

MOST_WAITING = 100_000
"""The most steps that are counted which wait for their questions to be admitted."""


class KindQueue(Struct, frozen=True, kw_only=True):
    """The steps of a kind that are under way.

    ready: those that a worker may take now; put_off: those that are to be tried later; paused: those of paused runs;
    oldest_seconds: how long the ready one that has waited longest has done so, None where there is none.
    """

    kind: str
    ready: int
    put_off: int
    paused: int
    running: int
    batched: int
    oldest_seconds: float | None


class RecentWork(Struct, frozen=True, kw_only=True):
    """The steps of a kind that a worker carried out in the last `WINDOW_SECONDS`; milliseconds: all together."""

    kind: str
    worker: str
    steps: int
    milliseconds: float


class Trouble(Struct, frozen=True, kw_only=True):
    """Executions of a kind that ended alike without a result in the last `TROUBLE_SECONDS`.

    outcome: how; type, message: the error of the latest one, None where it left none.
    """

    kind: str
    outcome: AttemptOutcome
    type: str | None
    message: str | None
    executions: int
    latest: datetime


class PutOff(Struct, frozen=True, kw_only=True):
    """Steps of a kind that are tried again later for one reason; seconds: until the first one is."""

    kind: str
    outcome: AttemptOutcome | None
    type: str | None
    message: str | None
    steps: int
    seconds: float


class SentBatch(Struct, frozen=True, kw_only=True):
    """A batch that hasn't ended.

    steps: how many of the project, or of one run, wait for it; lines: how many requests it has, of all runs; done: how
    many have ended, as far as the provider tells; provider_id, sent_at: None while it may not have been sent; problem:
    what went wrong.
    """

    provider_id: str | None
    steps: int
    lines: int
    done: int
    sent_at: datetime | None
    problem: str | None


class OpenBatch(SentBatch, frozen=True, kw_only=True):
    """A batch of requests to a model that its provider works on; steps: those of the project. See `SentBatch`."""

    model: str


class PausedRun(Struct, frozen=True, kw_only=True):
    """A run that is paused and has open questions."""

    run: str
    open: int


_READY, _DUE = steps.c.state == StepState.READY, func.coalesce(steps.c.not_before <= func.now(), True)
_PAUSED = runs.c.desired_state == DesiredState.PAUSED


def _under_way(*columns: Any) -> Select[Any]:
    """Select steps under way of open questions, in parts, as each has a partial index of its own."""
    parts = (
        (_READY, steps.c.sent_at.is_(None)),
        (_READY, steps.c.sent_at.is_not(None)),
        (steps.c.state == StepState.RUNNING,),
        (steps.c.state == StepState.BATCHED,),
    )
    ids = union_all(*(select(steps.c.id).where(*part) for part in parts)).subquery("under_way")
    return select(*columns).join_from(steps, ids, ids.c.id == steps.c.id).join(runs, runs.c.id == steps.c.run_id)


def read_queues(connection: Connection) -> tuple[KindQueue, ...]:
    """Return the queues of kinds of which steps are under way, by kind."""
    active, ready = ~_PAUSED, func.count().filter(_READY, _DUE, ~_PAUSED)
    # What was put off waits for a worker only since it was due again.
    waiting_since = func.greatest(steps.c.created_at, steps.c.not_before)
    oldest = func.min(waiting_since).filter(_READY, _DUE, active)
    statement = _under_way(
        steps.c.kind,
        ready.label("ready"),
        func.count().filter(_READY, ~_DUE, active).label("put_off"),
        func.count().filter(_READY, _PAUSED).label("paused"),
        func.count().filter(steps.c.state == StepState.RUNNING).label("running"),
        func.count().filter(steps.c.state == StepState.BATCHED).label("batched"),
        cast(func.extract("epoch", func.now() - oldest), Numeric).label("oldest_seconds"),
    ).where(QUESTION_OPEN, *in_project(connection, runs))
    rows = connection.execute(statement.group_by(steps.c.kind).order_by(steps.c.kind)).mappings()
    return tuple(KindQueue(**{**row, "oldest_seconds": _float(row["oldest_seconds"])}) for row in rows)


def count_waiting(connection: Connection) -> int:
    """Return how many steps wait for their questions to be admitted, at most `MOST_WAITING`."""
    waiting = select(literal(1)).join_from(steps, runs, runs.c.id == steps.c.run_id)
    some = waiting.where(steps.c.state == StepState.WAITING, *in_project(connection, runs)).limit(MOST_WAITING)
    return connection.execute(select(func.count()).select_from(some.subquery())).scalar_one()


def _recently_ended(connection: Connection, seconds: float) -> Any:
    """Select the steps that ended in so many seconds, of runs that may have some."""
    # Bounded by runs, and below by steps of each, as no index leads to the steps of a time.
    newest = select(runs.c.id).where(*in_project(connection, runs)).order_by(runs.c.created_at.desc(), runs.c.id.desc())
    chosen = union_all(newest.where(runs.c.digest.is_(None)).limit(MOST_RUNS), newest.limit(MOST_RUNS)).subquery()
    of = select(chosen.c.id).distinct().subquery("of")
    last = (
        select(steps.c.id, steps.c.kind, steps.c.worker, steps.c.milliseconds, steps.c.finished_at, steps.c.state)
        .where(steps.c.run_id == of.c.id, steps.c.ended_in.is_not(None), steps.c.adopted_from.is_(None))
        .order_by(steps.c.ended_in.desc(), steps.c.id.desc())
        .limit(MOST_ENDED)
        .lateral("last")
    )
    window = func.now() - func.make_interval(0, 0, 0, 0, 0, 0, seconds)
    return select(last).select_from(of.join(last, literal(True))).where(last.c.finished_at > window)


def read_recent_work(connection: Connection) -> tuple[RecentWork, ...]:
    """Return what each worker carried out in the last `WINDOW_SECONDS`, by kind."""
    ended = _recently_ended(connection, WINDOW_SECONDS).subquery("ended")
    number, taken = cast(func.count(), BigInteger), func.coalesce(func.sum(ended.c.milliseconds), 0.0)
    statement = (
        select(ended.c.kind, ended.c.worker, number.label("steps"), taken.label("milliseconds"))
        .where(ended.c.state == StepState.FINISHED, ended.c.worker.is_not(None))
        .group_by(ended.c.kind, ended.c.worker)
        .order_by(ended.c.kind, ended.c.worker)
    )
    return tuple(RecentWork(**row) for row in connection.execute(statement).mappings())


def read_troubles(connection: Connection) -> tuple[Trouble, ...]:
    """Return executions that ended without a result lately, of steps under way or just ended, the latest first."""
    ended = _recently_ended(connection, TROUBLE_SECONDS).subquery("ended")
    open_ones = _under_way(steps.c.id, steps.c.kind).where(*in_project(connection, runs))
    seen = union_all(open_ones, select(ended.c.id, ended.c.kind)).subquery("seen")
    window = func.now() - func.make_interval(0, 0, 0, 0, 0, 0, TROUBLE_SECONDS)
    type_, latest = attempts.c.error["type"].astext, func.max(attempts.c.ended_at)
    message = func.max(func.left(attempts.c.error["message"].astext, 1000))
    statement = (
        select(
            seen.c.kind,
            attempts.c.outcome,
            type_.label("type"),
            message.label("message"),
            func.count().label("executions"),
            latest.label("latest"),
        )
        .join_from(seen, attempts, attempts.c.step_id == seen.c.id)
        .where(attempts.c.ended_at > window, attempts.c.outcome.not_in(_RESULTS))
        .group_by(seen.c.kind, attempts.c.outcome, type_)
        .order_by(latest.desc())
    )
    return tuple(Trouble(**row) for row in connection.execute(statement).mappings())


_RESULTS = (AttemptOutcome.FINISHED, AttemptOutcome.BATCHED, AttemptOutcome.CANCELLED)


def read_put_off(connection: Connection) -> tuple[PutOff, ...]:
    """Return the ready steps that are to be tried later, by what their last execution met."""
    type_ = attempts.c.error["type"].astext
    seconds = func.extract("epoch", func.min(steps.c.not_before) - func.now())
    statement = (
        _under_way(
            steps.c.kind,
            attempts.c.outcome,
            type_.label("type"),
            func.max(func.left(attempts.c.error["message"].astext, 1000)).label("message"),
            func.count().label("steps"),
            seconds.label("seconds"),
        )
        .outerjoin(attempts, (attempts.c.step_id == steps.c.id) & (attempts.c.epoch == steps.c.epoch))
        .where(_READY, ~_DUE, ~_PAUSED, QUESTION_OPEN, *in_project(connection, runs))
        .group_by(steps.c.kind, attempts.c.outcome, type_)
        .order_by(steps.c.kind)
    )
    return tuple(
        PutOff(**{**row, "seconds": float(row["seconds"])}) for row in connection.execute(statement).mappings()
    )


def read_open_batches(connection: Connection) -> tuple[OpenBatch, ...]:
    """Return the batches for which steps of the project wait, the oldest first."""
    statement = (
        select(
            batches.c.model_name.label("model"),
            *(batches.c[name] for name in ("provider_id", "lines", "done", "sent_at", "problem")),
            func.count().label("steps"),
        )
        .join_from(batches, batch_items, batch_items.c.batch == batches.c.key)
        .join(steps, steps.c.id == batch_items.c.step_id)
        .join(runs, runs.c.id == steps.c.run_id)
        .where(batches.c.state.in_(OPEN_BATCHES), UNANSWERED, *in_project(connection, runs))
        .group_by(batches.c.key)
        .order_by(batches.c.created_at, batches.c.key)
    )
    return tuple(OpenBatch(**row) for row in connection.execute(statement).mappings())


def read_paused(connection: Connection) -> tuple[PausedRun, ...]:
    """Return the paused runs that have open questions, the newest first, at most `MOST_RUNS`."""
    number = select(func.count()).where(questions.c.run_id == runs.c.id, questions.c.status == QuestionStatus.OPEN)
    opened = number.correlate(runs).scalar_subquery()
    statement = (
        select(runs.c.id.label("run"), opened.label("open"))
        .where(runs.c.digest.is_(None), _PAUSED, *in_project(connection, runs))
        .order_by(runs.c.created_at.desc(), runs.c.id.desc())
        .limit(MOST_RUNS)
    )
    return tuple(each for each in (PausedRun(**row) for row in connection.execute(statement).mappings()) if each.open)


def _float(value: Any) -> float | None:
    return None if value is None else max(float(value), 0.0)


# Batches of a run: what of it waits for one, and what is with its provider.

LATELY_SECONDS = 300.0
"""How long it is shown that an account had no room for a request."""


class BatchUnderWay(SentBatch, frozen=True, kw_only=True):
    """A batch of a run that hasn't ended; steps: those of the run. See `SentBatch`."""

    expires_at: datetime | None


class RunBatches(Struct, frozen=True, kw_only=True):
    """The batches of a run that is asked in batches.

    waves: the most batches that a question has been in, the last of which may be under way or to come;
    waiting: how many steps wait for a batch to be made up. full: what the provider said where its account had no room
    for a single request of theirs lately.
    """

    waves: int
    waiting: int
    under_way: tuple[BatchUnderWay, ...] = ()
    full: str | None = None


_run = bindparam("run", type_=Text)
_is_batched = select(runs.c.batched).where(runs.c.id == _run)
_of_run = steps.c.id == batch_items.c.step_id, steps.c.run_id == _run
_wave = func.coalesce(batch_items.c.batch, "")
_asked_in = select(func.count(_wave.distinct()).label("asked")).where(*_of_run).group_by(steps.c.question_id)
_asked = _asked_in.subquery("asked")
_WAVES = select(func.coalesce(func.max(_asked.c.asked), 0))
_WAITING = select(func.count()).where(steps.c.run_id == _run, batch_items.c.batch.is_(None), UNANSWERED, QUESTION_OPEN)
_FULL = (
    select(batches.c.problem)
    .where(
        batches.c.too_large,
        batches.c.lines == 1,
        batches.c.ended_at > func.now() - func.make_interval(0, 0, 0, 0, 0, 0, LATELY_SECONDS),
        batches.c.model_name.in_(select(batch_items.c.model_name).where(*_of_run, batch_items.c.batch.is_(None))),
    )
    .order_by(batches.c.ended_at.desc())
    .limit(1)
)
_UNDER_WAY = (
    select(
        *(batches.c[name] for name in ("provider_id", "lines", "done", "sent_at", "expires_at", "problem")),
        cast(func.count(), BigInteger).label("steps"),
    )
    .where(steps.c.run_id == _run, batch_items.c.batch == batches.c.key, UNANSWERED, batches.c.state.in_(OPEN_BATCHES))
    .group_by(batches.c.key)
    .order_by(batches.c.created_at, batches.c.key)
)


def read_batches(connection: Connection, run_id: str) -> RunBatches | None:
    """Return the batches of a run; None where it isn't asked in batches."""
    parameters = {"run": run_id}
    if not connection.execute(_is_batched, parameters).scalar():
        return None
    return RunBatches(
        waves=connection.execute(_WAVES, parameters).scalar_one(),
        waiting=connection.execute(_WAITING, parameters).scalar_one(),
        full=connection.execute(_FULL, parameters).scalar(),
        under_way=tuple(BatchUnderWay(**row) for row in connection.execute(_UNDER_WAY, parameters).mappings()),
    )
