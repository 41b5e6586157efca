"""Questions of a run by how they came out: a page of them, filtered and sorted, and how many there are of each sort.

The numbers stand with the run (`SummarizedRun`); a page reads the run's summaries once at most, which are narrow rows.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

import sqlalchemy as sa
from msgspec import Struct

from cotrail.models.queries.listed_questions import page_of
from cotrail.models.schema.service_tables import question_summaries as summaries
from cotrail.models.schema.service_tables import run_summaries
from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.tables import questions

Outcome = Literal["right", "partly", "wrong", "unscored", "failed", "cancelled"]
"""Of a question that has ended; `partly`: its answer is wrong and shares words with a published one."""

Trait = Literal["gold-missing", "limited", "retried", "slow", "long", "costly"]
"""Of a question that has ended. `gold-missing`: a gold paragraph wasn't collected; `limited`: a limit ended it;
`retried`: a step was executed again; `slow`, `long`, `costly`: it took more than twice the mean time, steps, cost."""

Order = Literal["position", "score", "-score", "steps", "-steps", "time", "-time", "cost", "-cost"]
"""Of a list; with a minus, the largest first."""

EXCESS = 2.0
"""How many times the mean is much."""

MOST_LENGTHS = 30

_SORTED: Mapping[str, sa.ColumnElement[Any]] = {
    "score": summaries.c.graded,
    "steps": summaries.c.steps,
    "time": summaries.c.milliseconds,
    "cost": summaries.c.paid,
}
_run = sa.bindparam("run", type_=sa.Text)


class SummaryCounts(Struct, frozen=True, kw_only=True):
    """The summarized questions of a run: how many there are of each sort, and sums of what they took.

    cost: in US dollars, None where its models have no price; milliseconds: of its steps, those at once added up.
    lengths: numbers of questions by how many steps they have, at most `MOST_LENGTHS` of them.
    """

    questions: int = 0
    outcomes: dict[Outcome, int] = {}
    causes: dict[str, int] = {}
    traits: dict[Trait, int] = {}
    steps: int = 0
    retries: int = 0
    tokens: int = 0
    milliseconds: float = 0.0
    cost: Decimal | None = None
    lengths: dict[int, int] = {}


class ScoredOutcome(Struct, frozen=True, kw_only=True):
    """How a question came out, and the metrics that it has."""

    outcome: Outcome
    scores: dict[str, float | None]


class Chosen(Struct, frozen=True, kw_only=True):
    """Which questions of a run are listed: all conditions hold; those by which nothing is chosen are empty.

    text: that the question, its id or its answer contains.
    """

    outcomes: Sequence[Outcome] = ()
    causes: Sequence[str] = ()
    traits: Sequence[Trait] = ()
    statuses: Sequence[QuestionStatus] = ()
    text: str = ""


def read_summarized(connection: sa.Connection, run_ids: Collection[str]) -> dict[str, sa.RowMapping]:
    """Return what is summarized of these runs, by the run."""
    rows = connection.execute(sa.select(run_summaries).where(run_summaries.c.run_id.in_(run_ids))).mappings()
    return {row["run_id"]: row for row in rows}


def count_summaries(connection: sa.Connection, run_id: str) -> SummaryCounts:
    """Count the summarized questions of a run, reading all of them."""
    rows = connection.execute(_COUNTS, {"run": run_id}).mappings().all()
    outcomes, causes, traits, sums = Counter[Any](), Counter[str](), Counter[Any](), Counter[str]()
    for row in rows:
        outcomes[row["outcome"]] += row["questions"]
        causes.update({row["cause"]: row["questions"]} if row["cause"] else {})
        traits.update({name: row[name] for name in _traits(_means)})
        sums.update({name: row[name] for name in ("questions", "steps", "retries", "tokens", "milliseconds")})
    known = [row["cost"] for row in rows if row["cost"] is not None]
    return SummaryCounts(
        questions=sums["questions"],
        outcomes=dict(outcomes),
        causes=dict(causes),
        traits={name: number for name, number in traits.items() if number},
        steps=sums["steps"],
        retries=sums["retries"],
        tokens=sums["tokens"],
        milliseconds=float(sums["milliseconds"]),
        cost=sum(known, Decimal()) if known else None,
        lengths={row.steps: row.questions for row in connection.execute(_LENGTHS, {"run": run_id})},
    )


def read_question_scores(connection: sa.Connection, run_id: str) -> list[ScoredOutcome]:
    """Return the scores of a run's summarized questions, in the order of their places."""
    query = sa.select(summaries.c.outcome, summaries.c.scores).where(summaries.c.run_id == run_id)
    rows = connection.execute(query.order_by(summaries.c.question_id))
    return [ScoredOutcome(outcome=row.outcome, scores=row.scores) for row in rows]


def read_scores_by_question(connection: sa.Connection, run_id: str) -> dict[str, dict[str, float | None]]:
    """Return the metrics that each of a run's summarized questions has, by its id, in the order of their places.

    Those that were cancelled, or left over by a rule or a budget, are left out.
    """
    query = (
        sa.select(questions.c.key, summaries.c.scores)
        .join(summaries, summaries.c.question_id == questions.c.id)
        .where(summaries.c.run_id == run_id, questions.c.status != QuestionStatus.CANCELLED)
        .order_by(questions.c.id)
    )
    return {row.key: row.scores for row in connection.execute(query)}


def list_summarized(
    connection: sa.Connection,
    run_id: str,
    chosen: Chosen,
    counts: SummaryCounts,
    *,
    order: Order,
    limit: int,
    after: int | None = None,
) -> list[sa.RowMapping]:
    """Return rows of a run's questions, each with its summary where it has one, in this order.

    Apart from that of their places, an order has the questions alone that have ended. counts: of the run; after: the
    page begins behind the question of this id.
    """
    # Only questions that have ended have an outcome, a cause or a trait.
    ended = chosen.outcomes or chosen.causes or chosen.traits or (order != "position" and not chosen.statuses)
    if ended:
        query = sa.select(summaries.c.question_id).where(summaries.c.run_id == run_id, *_conditions(chosen, counts))
        if chosen.text or chosen.statuses:
            query = query.join(questions, questions.c.id == summaries.c.question_id).where(*_holding(chosen.text))
        if chosen.statuses:
            query = query.where(questions.c.status.in_(chosen.statuses))
        page = _ordered(query, order, after).limit(limit)
    else:
        statuses = chosen.statuses or tuple(QuestionStatus)
        page = page_of([questions.c.id], run_id, statuses, limit, after, *_holding(chosen.text))
    ids = connection.execute(page).scalars().all()
    rows = {row["id"]: row for row in connection.execute(_ROWS.where(questions.c.id.in_(ids))).mappings()}
    return [rows[each] for each in ids if each in rows]


def _ordered(query: sa.Select[Any], order: Order, after: int | None) -> sa.Select[Any]:
    if order == "position":
        behind = query if after is None else query.where(summaries.c.question_id > after)
        return behind.order_by(summaries.c.question_id)
    # An index has each order with the ids behind it, and is read from either end.
    place, down = (_SORTED[order.removeprefix("-")], summaries.c.question_id), order.startswith("-")
    if after is not None:
        own, last = sa.tuple_(*place), sa.select(*place).where(summaries.c.question_id == after).scalar_subquery()
        query = query.where(own < last if down else own > last)
    return query.order_by(*(each.desc() if down else each for each in place))


def _conditions(chosen: Chosen, counts: SummaryCounts) -> list[sa.ColumnElement[bool]]:
    traits = _traits(_means_of(counts))
    return [
        *([summaries.c.outcome.in_(chosen.outcomes)] if chosen.outcomes else ()),
        *([summaries.c.cause.in_(chosen.causes)] if chosen.causes else ()),
        *(traits[each] for each in chosen.traits),
    ]


def _holding(text: str) -> list[sa.ColumnElement[bool]]:
    columns = (questions.c.text, questions.c.key, questions.c.answer)
    return [sa.or_(*(each.icontains(text, autoescape=True) for each in columns))] if text else []


def _means_of(counts: SummaryCounts) -> Mapping[str, Any]:
    """What a question took on average, by the column."""
    number = counts.questions or 1
    paid = float(counts.cost) if counts.cost is not None else counts.tokens
    return {"milliseconds": counts.milliseconds / number, "steps": counts.steps / number, "paid": paid / number}


def _traits(means: Mapping[str, Any]) -> dict[Trait, sa.ColumnElement[bool]]:
    return {
        "gold-missing": sa.and_(summaries.c.recall.is_not(None), summaries.c.recall < 1),
        "limited": summaries.c.limited,
        "retried": summaries.c.retries > 0,
        "slow": summaries.c.milliseconds > EXCESS * means["milliseconds"],
        "long": summaries.c.steps > EXCESS * means["steps"],
        "costly": summaries.c.paid > EXCESS * means["paid"],
    }


_of_run = (
    sa.select(
        sa.func.avg(summaries.c.milliseconds).label("milliseconds"),
        sa.cast(sa.func.avg(summaries.c.steps), sa.Double).label("steps"),
        sa.func.avg(summaries.c.paid).label("paid"),
    )
    .where(summaries.c.run_id == _run)
    .cte("means")
)
_means: Mapping[str, Any] = {
    name: sa.select(_of_run.c[name]).scalar_subquery() for name in ("milliseconds", "steps", "paid")
}
_COUNTS = (
    sa.select(
        summaries.c.outcome,
        summaries.c.cause,
        sa.func.count().label("questions"),
        *(sa.func.count().filter(trait).label(name) for name, trait in _traits(_means).items()),
        *(
            sa.cast(sa.func.sum(summaries.c[name]), sa.BigInteger).label(name)
            for name in ("steps", "retries", "tokens")
        ),
        sa.func.sum(summaries.c.milliseconds).label("milliseconds"),
        sa.func.sum(summaries.c.cost).label("cost"),
    )
    .where(summaries.c.run_id == _run)
    .group_by(summaries.c.outcome, summaries.c.cause)
)
_LENGTHS = (
    sa.select(summaries.c.steps, sa.func.count().label("questions"))
    .where(summaries.c.run_id == _run)
    .group_by(summaries.c.steps)
    .order_by(summaries.c.steps)
    .limit(MOST_LENGTHS)
)
_ROWS = sa.select(
    *(
        questions.c[name]
        for name in ("id", "position", "key", "text", "answers", "kind", "status", "answer", "ended_by", "reason")
    ),
    *(
        summaries.c[name]
        for name in ("outcome", "cause", "f1", "recall", "steps", "retries", "tokens", "milliseconds", "cost")
    ),
).join_from(questions, summaries, summaries.c.question_id == questions.c.id, isouter=True)
