"""Progress of a run: how far its questions and steps are, and what keeps them back."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Row, and_, bindparam, case, cast, exists, func, literal, literal_column, select

from cotrail.core.actions.kind import engine_of
from cotrail.core.actions.registry import KINDS
from cotrail.core.budgets import NO_BUDGETS, Budgets, Consumed
from cotrail.core.history import FAILURE
from cotrail.core.money import Spent
from cotrail.errors import BusyError
from cotrail.models.queries.queues import RunBatches, read_batches
from cotrail.models.queries.runs import no_questions, state_of
from cotrail.models.queries.spending import KindTotals, has_prices, read_spent
from cotrail.models.records.budgets import Blockage, read_blockage, read_budgets, read_run_consumed
from cotrail.models.records.projects import qualified
from cotrail.models.schema.states import AttemptOutcome, QuestionStatus, RunState, StepState
from cotrail.models.schema.tables import attempts, questions, runs, steps


class StepCounts(KindTotals, frozen=True, kw_only=True):
    """The numbers of a run's steps of one kind.

    due: those of open questions that a worker could take now; under_way: those of open questions that are ready,
        running or batched; adopted: those whose result, tokens and time another run computed; done_in_open,
        done_in_finished: those done of the open and of the finished questions.
    moving: the number of open questions that have a step of this kind under way.
    busy: whether any worker holds a step, of any kind and run.
    """

    waiting: int
    ready: int
    blocked: int
    running: int
    batched: int
    finished: int
    failed: int
    due: int
    under_way: int
    done_in_open: int
    done_in_finished: int
    moving: int
    busy: bool
    adopted: int

    @property
    def done(self) -> int:
        """The number of steps that have a result or failed."""
        return self.finished + self.failed


class Outage(Struct, frozen=True, kw_only=True):
    """A server that is away and holds steps of a run back, or a provider whose limits do (`busy`).

    message: the error of the latest trial; steps: the number that wait; since: when it was first found away;
    next_seconds: in how many seconds the next trial is due, 0 where it is under way.
    answers: whether others were answered meanwhile, as the limits allow.
    """

    what: str
    message: str
    steps: int
    since: datetime
    next_seconds: float
    busy: bool = False
    answers: bool = False


class Progress(Struct, frozen=True, kw_only=True):
    """Progress of a run; seconds: from the start of its first step to the end of its last one, with lost executions."""

    run: str
    desired_state: str
    questions: dict[str, int]
    kinds: tuple[StepCounts, ...]
    seconds: float
    outages: tuple[Outage, ...] = ()
    """The servers that are away and hold the run's steps back."""
    spent: Spent | None = None
    """What was spent on language models; None where none of them is hosted."""
    budgets: Budgets = NO_BUDGETS
    consumed: Consumed = Consumed()
    """What its steps took, where the run has a budget."""
    ends: Mapping[str, int] = {}
    """The number of questions by what ended them (`cotrail.core.history`), the most frequent first."""
    blockage: Blockage | None = None
    """The cause that keeps further questions from being admitted until a person has fixed it."""
    batches: RunBatches | None = None
    """Its batches; None where it isn't asked in batches."""

    @property
    def stopped(self) -> bool:
        """Whether one cause blocks the run, and what was under way has ended: a person has to fix it."""
        return self.blockage is not None and not any(counts.under_way for counts in self.kinds)

    @property
    def total(self) -> int:
        """The number of all questions."""
        return sum(self.questions.values())

    @property
    def open(self) -> int:
        """The number of questions that still have steps to come."""
        return self.questions[QuestionStatus.OPEN]

    @property
    def steps(self) -> int:
        """The number of steps that are done."""
        return sum(counts.done for counts in self.kinds)

    @property
    def state(self) -> RunState:
        return state_of(self.desired_state, self.questions, stopped=self.stopped)

    def tokens(self, name: str) -> int:
        """Return the sum over all kinds of `prompt_tokens`, `cached_prompt_tokens` or `generated_tokens`."""
        return sum(getattr(counts, name) for counts in self.kinds)


class StopCause(Struct, frozen=True, kw_only=True):
    """A cause for which questions failed or are blocked; questions: how many; examples: the first few of their keys."""

    status: str
    type: str
    message: str
    questions: int
    examples: tuple[str, ...]


def read_progress(connection: Connection, run_id: str) -> Progress:
    """Return the progress of a run."""
    statuses = select(questions.c.status, func.count()).where(questions.c.run_id == run_id)
    counts = no_questions()
    for status, count in connection.execute(statuses.group_by(questions.c.status)):
        counts[status] = count
    rows = connection.execute(_STEPS, {"run": run_id}).mappings().all()
    began = min((row["began"] for row in rows if row["began"]), default=None)
    ended = max((row["ended"] for row in rows if row["ended"]), default=None)
    return Progress(
        run=run_id,
        desired_state=connection.execute(select(runs.c.desired_state).where(runs.c.id == run_id)).scalar_one(),
        questions=counts,
        kinds=tuple(StepCounts(**{name: row[name] for name in StepCounts.__struct_fields__}) for row in rows),
        seconds=(ended - began).total_seconds() if began and ended else 0.0,
        outages=read_outages(connection, run_id),
        spent=read_spent(connection, run_id) if has_prices(connection, run_id) else None,
        budgets=read_budgets(connection, run_id),
        consumed=read_run_consumed(connection, run_id),
        ends=read_ends(connection, run_id),
        blockage=read_blockage(connection, run_id),
        batches=read_batches(connection, run_id),
    )


def read_ends(connection: Connection, run_id: str) -> dict[str, int]:
    """Return the number of questions by what ended them, the most frequent first; those not recorded aren't counted."""
    failed = case((questions.c.status == QuestionStatus.FAILED, literal(FAILURE) + questions.c.reason["type"].astext))
    end = func.coalesce(questions.c.ended_by, failed)
    ended = select(end.label("by")).where(questions.c.run_id == run_id, end.is_not(None)).subquery("ended")
    number = func.count()
    counted = select(ended.c.by, number).group_by(ended.c.by).order_by(number.desc(), ended.c.by)
    return {row[0]: row[1] for row in connection.execute(counted)}


def read_standings(connection: Connection, experiment: str) -> dict[str, dict[str, int]]:
    """Return the number of questions by status of each of the experiment's runs, by the run's id."""
    query = (
        select(questions.c.run_id, questions.c.status, func.count())
        .join_from(questions, runs, questions.c.run_id == runs.c.id)
        .where(runs.c.experiment_id == qualified(connection, experiment))
        .group_by(questions.c.run_id, questions.c.status)
    )
    standings: dict[str, dict[str, int]] = {}
    for run_id, status, number in connection.execute(query):
        standings.setdefault(run_id, no_questions())[status] = number
    return standings


def is_complete(counts: Mapping[str, int]) -> bool:
    """Return whether every question of a run is finished or failed; only then do its results count."""
    return sum(counts.values()) == counts[QuestionStatus.FINISHED] + counts[QuestionStatus.FAILED]


def count_steps(connection: Connection, experiment: str) -> tuple[int, int]:
    """Return how many of the experiment's steps are done, and how many of these were adopted from another run."""
    query = select(func.count(), func.count(steps.c.adopted_from)).join_from(steps, runs, steps.c.run_id == runs.c.id)
    over = steps.c.state.in_([StepState.FINISHED, StepState.FAILED])
    of_experiment = runs.c.experiment_id == qualified(connection, experiment)
    row = connection.execute(query.where(of_experiment, over)).one()
    return row[0], row[1]


def read_causes(connection: Connection, run_id: str) -> list[StopCause]:
    """Return why questions of the run failed or are blocked, the most frequent cause first."""
    kind, message = questions.c.reason["type"].astext, questions.c.reason["message"].astext
    keys = func.array_agg(questions.c.key)
    query = (
        select(questions.c.status, kind, message, func.count().label("number"), keys)
        .where(
            questions.c.run_id == run_id,
            questions.c.status.in_((QuestionStatus.FAILED, QuestionStatus.BLOCKED)),  # which an index has
            questions.c.reason.is_not(None),
            kind.is_not(None),
        )
        .group_by(questions.c.status, kind, message)
        .order_by(literal_column("number").desc(), message)
    )
    return [
        StopCause(status=status, type=type_, message=text, questions=number, examples=tuple(sorted(named)[:3]))
        for status, type_, text, number, named in connection.execute(query)
    ]


def _count(*where: Any) -> Any:
    return func.count().filter(and_(*where))


_of_attempts: Any = select(func.min(attempts.c.started_at)).where(attempts.c.step_id == steps.c.id)
_first_started = case(
    (steps.c.epoch > 1, func.least(_of_attempts.correlate(steps).scalar_subquery(), steps.c.started_at)),
    else_=steps.c.started_at,
)
"""When a step was first begun; the executions of those that were executed once needn't be looked up."""


def _columns() -> Sequence[Any]:
    other = steps.alias("other")
    of_open = questions.c.status == QuestionStatus.OPEN
    of_finished = questions.c.status == QuestionStatus.FINISHED
    to_come = steps.c.state.in_([StepState.WAITING, StepState.READY])
    begun = steps.c.state.in_([StepState.READY, StepState.RUNNING, StepState.BATCHED])
    over = steps.c.state.in_([StepState.FINISHED, StepState.FAILED])
    return (
        steps.c.kind,
        *(_count(steps.c.state == state).label(str(state)) for state in StepState),
        _count(to_come, of_open, func.coalesce(steps.c.not_before <= func.now(), True)).label("due"),
        _count(begun, of_open).label("under_way"),
        _count(over, of_open).label("done_in_open"),
        _count(over, of_finished).label("done_in_finished"),
        func.count(steps.c.question_id.distinct()).filter(begun, of_open).label("moving"),
        exists().where(other.c.state == StepState.RUNNING).label("busy"),
        *(
            cast(func.coalesce(func.sum(steps.c[name]), 0), steps.c[name].type).label(name)
            for name in ("prompt_tokens", "cached_prompt_tokens", "generated_tokens", "milliseconds")
        ),
        func.count(steps.c.adopted_from).label("adopted"),
        func.min(_first_started).label("began"),
        func.max(steps.c.finished_at).label("ended"),
    )


_STEPS = (
    select(*_columns())
    .join_from(steps, questions, steps.c.question_id == questions.c.id)
    .where(steps.c.run_id == bindparam("run"))
    .group_by(steps.c.kind)
    .order_by(steps.c.kind)
)

_HELD = (
    select(
        steps.c.id,
        steps.c.kind,
        attempts.c.ended_at,
        attempts.c.error["message"].astext.label("message"),
        (attempts.c.error["type"].astext == BusyError.__name__).label("busy"),
        func.greatest(func.extract("epoch", steps.c.not_before - func.now()), 0.0).label("seconds"),
        and_(attempts.c.epoch == steps.c.epoch, steps.c.state == StepState.READY).label("given_back"),
    )
    .join_from(steps, questions, steps.c.question_id == questions.c.id)
    .join(attempts, attempts.c.step_id == steps.c.id)
    .where(
        steps.c.run_id == bindparam("run"),
        questions.c.run_id == bindparam("run"),  # implied by the line above, and opens the index that has the open ones
        steps.c.state.in_([StepState.READY, StepState.RUNNING]),
        questions.c.status == QuestionStatus.OPEN,
        attempts.c.outcome == AttemptOutcome.UNAVAILABLE,
    )
    .order_by(attempts.c.ended_at)
)
_ANSWERED = (
    select(
        steps.c.kind,
        func.count()
        .filter(steps.c.state == StepState.READY, questions.c.status == QuestionStatus.OPEN)
        .label("waiting"),
        func.max(steps.c.finished_at).filter(steps.c.state == StepState.FINISHED).label("answered"),
    )
    .join_from(steps, questions, steps.c.question_id == questions.c.id)
    .where(steps.c.run_id == bindparam("run"))
    .group_by(steps.c.kind)
)


def read_outages(connection: Connection, run_id: str) -> tuple[Outage, ...]:
    """Return the servers that have been away since they last answered a step of the run."""
    held = connection.execute(_HELD, {"run": run_id}).all()
    if not held:
        return ()
    kinds = connection.execute(_ANSWERED, {"run": run_id}).all()
    away = dict.fromkeys(_needed(row.kind) for row in held)
    found = (_outage(what, _of(what, held), _of(what, kinds)) for what in away)
    return tuple(outage for outage in found if outage)


def _of(what: str, rows: Iterable[Row[*tuple[Any, ...]]]) -> list[Any]:
    return [row for row in rows if _needed(row.kind) == what]


def _needed(kind: str) -> str:
    # A later release may have recorded steps of a kind that this one doesn't know.
    return KINDS[kind].needed_by_all if kind in KINDS else engine_of(kind)


def _outage(what: str, held: list[Any], kinds: list[Any]) -> Outage | None:
    answered = max((row.answered for row in kinds if row.answered), default=None)
    # What was found away before the latest answer is back.
    met = [row for row in held if answered is None or row.ended_at > answered]
    # Limits hold back single steps while others are answered: those that weren't tried again since.
    at_limits = [row for row in held if row.busy and row.given_back]
    if not met and not at_limits:
        return None
    shown = met or at_limits
    busy = bool(shown[-1].busy)
    return Outage(
        what=what,
        message=shown[-1].message,
        steps=len({row.id for row in shown if row.busy}) if busy else sum(row.waiting for row in kinds),
        since=shown[0].ended_at,
        next_seconds=float(min(row.seconds for row in shown)),
        busy=busy,
        answers=busy and answered is not None and answered > shown[0].ended_at,
    )
