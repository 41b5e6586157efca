"""Budgets of runs and questions, and causes that block a run: what keeps a run from asking on."""

import socket
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy.dialects.postgresql import insert

from cotrail.core.binding import MODEL
from cotrail.core.budgets import NO_BUDGET, NO_BUDGETS, Budgets, Consumed, priced, total
from cotrail.core.history import Halts, Next, Outcome, consumed_by
from cotrail.core.money import Usage, dollars
from cotrail.core.results import Failure, failure_of
from cotrail.core.system import Action
from cotrail.errors import InputError, QuotaExceededError, ReplayMismatchError, UnreadableError
from cotrail.models.records.projects import in_project, own_project
from cotrail.models.records.runs import BUDGETS, PRICES, RunPlan
from cotrail.models.schema.base import Rows, recordset
from cotrail.models.schema.service_tables import projects
from cotrail.models.schema.states import DesiredState, QuestionStatus, StepState
from cotrail.models.schema.tables import QUESTION_OPEN, questions, run_consumption, runs, steps


class EndedStep(Struct, frozen=True, kw_only=True):
    """A step that has just ended, and the run that it was computed for."""

    run: RunPlan
    action: Action
    outcome: Outcome
    milliseconds: float


class BudgetCheck:
    """Says which questions a budget ends, from what is recorded in this transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._of_runs: dict[str, Consumed] = {}
        self._budgets: dict[str, Budgets] = {}
        self._halted: Rows = []

    def of(self, plan: RunPlan) -> Budgets:
        """Return the budgets of a run, which a person may have raised since it was submitted."""
        if plan.budgets == NO_BUDGETS:
            return NO_BUDGETS
        if plan.id not in self._budgets:
            self._budgets[plan.id] = read_budgets(self._connection, plan.id)
        return self._budgets[plan.id]

    def halted(self, plan: RunPlan, question_id: int, halts: Halts, recorded: int, following: Next) -> Halts | None:
        """Return where a question ends whose next steps would be these; None where its budgets leave room for them.

        halts: where it was ended before; recorded: how many steps it has, all of which have ended.
        """
        if plan.budgets == NO_BUDGETS or not following.steps or not recorded:
            return None
        question = read_consumed(self._connection, plan, question_id)
        limit = self.of(plan).reached(question, self._of_run(plan))
        if not limit:
            return None
        halted = replace(halts, after=recorded, limit=limit)
        self._halted.append({"id": question_id, "halted": halted})
        return halted

    def record(self) -> None:
        """Record where questions were halted."""
        record_halts(self._connection, self._halted)

    def _of_run(self, plan: RunPlan) -> Consumed:
        if plan.budgets.run == NO_BUDGET:
            return Consumed()
        if plan.id not in self._of_runs:
            self._of_runs[plan.id] = read_run_consumed(self._connection, plan.id)
        return self._of_runs[plan.id]


def read_consumed(connection: sa.Connection, plan: RunPlan, question_id: int) -> Consumed:
    """Return what the ended steps of a question took, whether or not another run computed them."""
    rows = connection.execute(_CONSUMED, {"question": question_id}).mappings()
    return total(
        priced(
            Usage(**{name: int(row[name]) for name in _TOKENS}), row["milliseconds"] or 0, plan.prices.get(row["role"])
        )
        for row in rows
    )


def add_consumed(connection: sa.Connection, ended: Iterable[EndedStep]) -> None:
    """Add what steps took to the sums of those of their runs that have budgets."""
    parts: dict[str, list[Consumed]] = defaultdict(list)
    for each in ended:
        if each.run.budgets.run != NO_BUDGET:
            price = each.run.prices.get(getattr(each.action, "model", MODEL))
            parts[each.run.id].append(consumed_by(each.outcome, each.milliseconds, price))
    # In the order of their ids, so that transactions that add to the same runs can't deadlock.
    for run_id in sorted(parts):
        added = total(parts[run_id])
        values = {name: getattr(added, name) for name in Consumed.__struct_fields__}
        connection.execute(_ADD, {"run_id": run_id, **values})


def record_halts(connection: sa.Connection, rows: Rows) -> None:
    """Record where budgets ended questions, by their ids."""
    if rows:
        connection.execute(_HALT, {"rows": rows})


def read_budgets(connection: sa.Connection, run_id: str) -> Budgets:
    """Return the budgets of a run, as they were raised last."""
    return msgspec.convert(connection.execute(_BUDGETS, {"run": run_id}).scalar_one() or {}, Budgets)


def raise_budgets(connection: sa.Connection, run_id: str, budgets: Budgets) -> None:
    """Give a run other budgets from now on."""
    # The zeros are for a run of which nothing is recorded so far; sums that are there stay.
    connection.execute(_RAISE, {"run_id": run_id, "raised": budgets, **dict.fromkeys(Consumed.__struct_fields__, 0)})


def read_run_consumed(connection: sa.Connection, run_id: str) -> Consumed:
    """Return what the steps of a run with a budget took that were computed for it."""
    row = connection.execute(_OF_RUN, {"run": run_id}).mappings().one_or_none()
    return Consumed(**row) if row else Consumed()


_TOKENS = {
    "input_tokens": "prompt_tokens",
    "cached_tokens": "cached_prompt_tokens",
    "cache_written_tokens": "cache_written_tokens",
    "output_tokens": "generated_tokens",
}
_written: Any = sa.func.coalesce(steps.c.result, steps.c.failure["written"], type_=steps.c.result.type)
_CONSUMED = (
    sa.select(
        sa.func.coalesce(steps.c.request["model"].astext, MODEL).label("role"),
        steps.c.milliseconds,
        *(
            sa.func.coalesce(_written[name].astext.cast(sa.BigInteger), 0).label(label)
            for label, name in _TOKENS.items()
        ),
    )
    .where(steps.c.question_id == sa.bindparam("question"), steps.c.state.in_([StepState.FINISHED, StepState.FAILED]))
    .order_by(steps.c.sequence)
)
_new = insert(run_consumption).values({name: sa.bindparam(name) for name in ("run_id", *Consumed.__struct_fields__)})
_ADD = _new.on_conflict_do_update(
    index_elements=[run_consumption.c.run_id],
    set_={name: run_consumption.c[name] + _new.excluded[name] for name in Consumed.__struct_fields__},
)
_OF_RUN = sa.select(*(run_consumption.c[name] for name in Consumed.__struct_fields__)).where(
    run_consumption.c.run_id == sa.bindparam("run")
)
CURRENT: sa.ColumnElement[Any] = sa.func.coalesce(run_consumption.c.raised, runs.c.provenance[BUDGETS])
"""The budgets of a run that is joined with what it consumed."""

_BUDGETS = (
    sa.select(CURRENT)
    .join_from(runs, run_consumption, run_consumption.c.run_id == runs.c.id, isouter=True)
    .where(runs.c.id == sa.bindparam("run"))
)
_raised = insert(run_consumption)
_RAISE = _raised.on_conflict_do_update(
    index_elements=[run_consumption.c.run_id], set_={"raised": _raised.excluded.raised}
)
_halts = recordset(questions.c.id, questions.c.halted)
_HALT = sa.update(questions).where(questions.c.id == _halts.c.id).values(halted=_halts.c.halted)


# Circuit breaker of a run: a cause that blocks question after question stops the run until a person has fixed it.

IN_A_ROW = 20
"""The number of questions blocked by one cause in a row after which no further ones are admitted."""

OF_THE_RECORD = (ReplayMismatchError, UnreadableError)
"""What blocks a question on whichever host; everything else is about what the host of this process has."""


def reason_here(error: BaseException) -> Failure:
    """Return why a question is blocked, as it is stored: with the host where a person has to fix it."""
    failure = failure_of(error)
    if isinstance(error, OF_THE_RECORD):
        return failure
    return Failure(type=failure.type, message=f"on the host {socket.gethostname()}, {failure.message}")


class Blockage(Struct, frozen=True, kw_only=True):
    """The cause that stops a run. questions: how many it has blocked; type, message: those of the latest."""

    questions: int
    type: str
    message: str


_type = questions.c.reason["type"].astext
_latest = (
    sa.select(questions.c.status, _type.label("type"))
    .where(questions.c.run_id == runs.c.id, questions.c.finished_at.is_not(None))
    .order_by(questions.c.finished_at.desc(), questions.c.id.desc())
    .limit(IN_A_ROW)
    .correlate(runs)
    .lateral("latest")
)
_by_one_cause = sa.and_(
    sa.func.count() == IN_A_ROW,
    sa.func.bool_and(_latest.c.status == QuestionStatus.BLOCKED),
    sa.func.count(_latest.c.type.distinct()) == 1,
)
STOPPED: sa.ColumnElement[bool] = sa.select(_by_one_cause).select_from(_latest).correlate(runs).scalar_subquery()
"""Condition of statements over runs: one cause blocks the run."""

_of_open = sa.exists().where(steps.c.run_id == runs.c.id, QUESTION_OPEN)
# In parts, as each has a partial index of its own: `ready` alone would match neither of the first two.
_under_way = sa.or_(
    _of_open.where(steps.c.state == StepState.READY, steps.c.sent_at.is_(None)),
    _of_open.where(steps.c.state == StepState.READY, steps.c.sent_at.is_not(None)),
    _of_open.where(steps.c.state == StepState.RUNNING),
    _of_open.where(steps.c.state == StepState.BATCHED),
)
_STOPPED = sa.select(runs.c.id).where(runs.c.digest.is_(None), runs.c.desired_state == DesiredState.ACTIVE, STOPPED)
_BLOCKED = (
    sa.select(_type, questions.c.reason["message"].astext, sa.func.count().over(partition_by=_type))
    .where(questions.c.run_id == sa.bindparam("run"), questions.c.status == QuestionStatus.BLOCKED)
    .order_by(questions.c.finished_at.desc(), questions.c.id.desc())
    .limit(1)
)


def stopped_runs(connection: sa.Connection) -> frozenset[str]:
    """Return the runs that one cause stops, and of which no step is under way any more."""
    stopped = _STOPPED.where(sa.not_(_under_way), *in_project(connection, runs))
    return frozenset(connection.execute(stopped).scalars())


def read_blockage(connection: sa.Connection, run_id: str) -> Blockage | None:
    """Return the cause that stops a run, if one does."""
    if connection.execute(_STOPPED.where(runs.c.id == run_id)).first() is None:
        return None
    row = connection.execute(_BLOCKED, {"run": run_id}).one_or_none()
    return None if row is None else Blockage(type=row[0], message=row[1], questions=row[2])


# Quotas of projects, checked in the transactions that submit: of two at once, one waits for the other.


class Quota(Struct, frozen=True, kw_only=True):
    """What a project may have at once (questions that haven't ended) and spend (US dollars); None: without limit."""

    open_questions: int | None
    money: Decimal | None

    @property
    def limits(self) -> bool:
        """Whether anything is limited."""
        return self.open_questions is not None or self.money is not None


def lock_quota(connection: sa.Connection) -> Quota:
    """Return the quota of the connection's project; where it limits anything, others who submit wait from now on."""
    of_project = sa.select(projects.c.open_questions, projects.c.money).where(
        projects.c.name == own_project(connection)
    )
    quota = _quota(connection.execute(of_project).one_or_none())
    if not quota.limits:
        return quota
    # Runs refer to the row, so it is locked no more than they let it be.
    # Read again: the quota may have changed while this waited for the lock.
    return _quota(connection.execute(of_project.with_for_update(key_share=True)).one_or_none())


def check_quota(connection: sa.Connection, quota: Quota, provenances: Iterable[Mapping[str, Any]]) -> None:
    """Raise QuotaExceededError where the project's runs, those of this transaction among them, exceed its quota.

    provenances: of the transaction's runs. Where money is limited, a run that costs any needs a budget, which is set
    aside until it ends; InputError where it has none.
    """
    if quota.open_questions is not None:
        _check_open_questions(connection, quota.open_questions)
    if quota.money is not None:
        if any(each.get(PRICES) and each.get(BUDGETS, {}).get("run", {}).get("money") is None for each in provenances):
            raise InputError(
                "the project's money is limited, so a run whose models cost any needs a budget of money for the whole "
                "run (`run_budget`, or `question_budget` of a question that is asked alone); it is set aside for the "
                "run until this ends"
            )
        _check_money(connection, quota.money)


def _check_open_questions(connection: sa.Connection, most: int) -> None:
    project = own_project(connection)
    unended = questions.c.status.in_((QuestionStatus.OPEN, QuestionStatus.BLOCKED))
    of_project = sa.select(sa.func.count()).join_from(questions, runs, questions.c.run_id == runs.c.id)
    own = of_project.where(runs.c.project == project, runs.c.digest.is_(None), unended)
    if (number := connection.execute(own).scalar_one()) > most:
        raise QuotaExceededError(
            f"the project {project} would have {number:,} open questions, and may have {most:,}; wait until some have "
            "ended, cancel a run, submit fewer, or ask for a larger quota"
        )


def _check_money(connection: sa.Connection, most: Decimal) -> None:
    project = own_project(connection)
    live = sa.and_(runs.c.digest.is_(None), runs.c.desired_state.in_((DesiredState.ACTIVE, DesiredState.PAUSED)))
    taken = sa.func.coalesce(run_consumption.c.money, 0)
    budgets = sa.func.coalesce(run_consumption.c.raised, runs.c.provenance[BUDGETS], type_=runs.c.provenance.type)
    set_aside = sa.func.coalesce(budgets["run"]["money"].astext.cast(sa.Numeric), 0)
    counted = sa.func.sum(sa.case((live, sa.func.greatest(taken, set_aside)), else_=taken))
    of_project = sa.select(sa.func.coalesce(counted, 0)).select_from(runs.outerjoin(run_consumption))
    if (money := connection.execute(of_project.where(runs.c.project == project)).scalar_one()) > most:
        raise QuotaExceededError(
            f"the project {project} would spend up to {dollars(money)}, and may spend {dollars(most)}; give the run a "
            "smaller budget, cancel another one, or ask for a larger quota"
        )


def _quota(row: Any) -> Quota:
    return Quota(open_questions=row and row.open_questions, money=row and row.money)
