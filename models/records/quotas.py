"""Quotas of projects, checked in the transactions that submit: of two at once, one waits for the other."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Numeric, and_, case, func, select

from cotrail.core.money import dollars
from cotrail.errors import InputError, QuotaExceededError
from cotrail.models.records.projects import own_project
from cotrail.models.records.runs import BUDGETS, PRICES
from cotrail.models.schema.service_tables import projects
from cotrail.models.schema.states import DesiredState, QuestionStatus
from cotrail.models.schema.tables import questions, run_consumption, runs


class Quota(Struct, frozen=True, kw_only=True):
    """What a project may have at once (questions that haven't ended) and spend (US dollars); None: without limit."""

    open_questions: int | None
    money: Decimal | None

    @property
    def limits(self) -> bool:
        """Whether anything is limited."""
        return self.open_questions is not None or self.money is not None


def lock_quota(connection: Connection) -> Quota:
    """Return the quota of the connection's project; where it limits anything, others who submit wait from now on."""
    of_project = select(projects.c.open_questions, projects.c.money).where(projects.c.name == own_project(connection))
    quota = _quota(connection.execute(of_project).one_or_none())
    if not quota.limits:
        return quota
    # Runs refer to the row, so it is locked no more than they let it be.
    # Read again: the quota may have changed while this waited for the lock.
    return _quota(connection.execute(of_project.with_for_update(key_share=True)).one_or_none())


def check_quota(connection: Connection, quota: Quota, provenances: Iterable[Mapping[str, Any]]) -> None:
    """Raise QuotaExceededError where the project's runs, those of this transaction among them, exceed its quota.

    provenances: of the transaction's runs. Where money is limited, a run that costs any needs a budget, which is set
    aside until it ends; InputError where it has none.
    """
    if quota.open_questions is not None:
        _check_open_questions(connection, quota.open_questions)
    if quota.money is not None:
        if any(each.get(PRICES) and _budget(each) is None for each in provenances):
            raise InputError(
                "the project's money is limited, so a run whose models cost any needs a budget of money for the whole "
                "run (`run_budget`, or `question_budget` of a question that is asked alone); it is set aside for the "
                "run until this ends"
            )
        _check_money(connection, quota.money)


def _check_open_questions(connection: Connection, most: int) -> None:
    project = own_project(connection)
    unended = questions.c.status.in_((QuestionStatus.OPEN, QuestionStatus.BLOCKED))
    of_project = select(func.count()).join_from(questions, runs, questions.c.run_id == runs.c.id)
    own = of_project.where(runs.c.project == project, runs.c.digest.is_(None), unended)
    if (number := connection.execute(own).scalar_one()) > most:
        raise QuotaExceededError(
            f"the project {project} would have {number:,} open questions, and may have {most:,}; wait until some have "
            "ended, cancel a run, submit fewer, or ask for a larger quota"
        )


def _check_money(connection: Connection, most: Decimal) -> None:
    project = own_project(connection)
    live = and_(runs.c.digest.is_(None), runs.c.desired_state.in_((DesiredState.ACTIVE, DesiredState.PAUSED)))
    taken = func.coalesce(run_consumption.c.money, 0)
    budgets = func.coalesce(run_consumption.c.raised, runs.c.provenance[BUDGETS], type_=runs.c.provenance.type)
    set_aside = func.coalesce(budgets["run"]["money"].astext.cast(Numeric), 0)
    counted = func.sum(case((live, func.greatest(taken, set_aside)), else_=taken))
    of_project = select(func.coalesce(counted, 0)).select_from(runs.outerjoin(run_consumption))
    if (money := connection.execute(of_project.where(runs.c.project == project)).scalar_one()) > most:
        raise QuotaExceededError(
            f"the project {project} would spend up to {dollars(money)}, and may spend {dollars(most)}; give the run a "
            "smaller budget, cancel another one, or ask for a larger quota"
        )


def _budget(provenance: Mapping[str, Any]) -> Any:
    return provenance.get(BUDGETS, {}).get("run", {}).get("money")


def _quota(row: Any) -> Quota:
    return Quota(open_questions=row and row.open_questions, money=row and row.money)
