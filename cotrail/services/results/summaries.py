"""Questions of a run by how they came out: a page of them, filtered and sorted."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Meta, Struct
from sqlalchemy import Connection, Engine, RowMapping

from cotrail.models.queries.question_summaries import Chosen, SummaryCounts, list_summarized, read_summarized
from cotrail.models.queries.question_summaries import Order as Order
from cotrail.models.queries.question_summaries import Outcome as Outcome
from cotrail.models.queries.question_summaries import Trait as Trait
from cotrail.models.queries.runs import RunSummary, resolve_run, summaries_of
from cotrail.models.queries.traces import find_question
from cotrail.models.records.questions import QuestionInList, in_list
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.results.summarizing import SMALL, counts_in, ended, for_seconds, is_due, summarize
from cotrail.services.store import open_store, reading, reading_from

ASKED_SECONDS = 1.0
"""How long that may take, not counting the last chunk."""


class SummarizedQuestion(QuestionInList, frozen=True, kw_only=True):
    """A question in a list; what only a trace tells is None where it hasn't ended, or isn't summarized yet.

    answers: the published ones.
    cause: why its answer is wrong, as a name in addresses; retries: executions of its steps beyond the first of each.
    seconds: of its steps, those at once added up; dollars: None where its models have no price.
    """

    answers: tuple[str, ...]
    outcome: Outcome | None
    cause: str | None
    f1: float | None
    recall: float | None
    steps: int | None
    retries: int | None
    tokens: int | None
    seconds: float | None
    dollars: Decimal | None


class QuestionSummaries(Struct, frozen=True, kw_only=True):
    """Questions of a run by how they came out; after: names the page that follows, None where none does.

    statuses: the numbers of all its questions; counts: of those that are summarized; waiting: how many have ended and
    aren't summarized yet.
    """

    run: str
    questions: tuple[SummarizedQuestion, ...]
    after: str | None
    statuses: Mapping[str, int]
    counts: SummaryCounts
    waiting: int


def summarize_small(engine: Engine, run: str) -> RunSummary:
    """Summarize what is due of a run of few questions, so that it is complete whenever somebody looks at it.

    Returns how the run stands; raises UnknownNameError.
    """
    with reading_from(engine) as connection:
        [summary] = summaries_of(connection, [resolve_run(connection, run)])
        due = ended(summary) <= SMALL and is_due(connection, summary)
    if due:
        summarize(engine, summary.run.id, for_seconds(ASKED_SECONDS))
    return summary


def read_summaries(
    connection: Connection, summary: RunSummary, chosen: Chosen, *, order: Order, limit: int, after: str | None
) -> QuestionSummaries:
    """A page of a run's questions; after: the question behind which it begins, by its id or number.

    Raises UnknownNameError.
    """
    run_id = summary.run.id
    behind = None if after is None else find_question(connection, run_id, after)
    counts = counts_in(read_summarized(connection, [run_id]).get(run_id))
    rows = list_summarized(connection, run_id, chosen, counts, order=order, limit=limit + 1, after=behind)
    return QuestionSummaries(
        run=run_id,
        questions=tuple(map(_summarized, rows[:limit])),
        after=rows[limit - 1]["key"] if len(rows) > limit else None,
        statuses=summary.questions,
        counts=counts,
        waiting=max(ended(summary) - counts.questions, 0),
    )


def _summarized(row: RowMapping) -> SummarizedQuestion:
    own = ("outcome", "cause", "f1", "recall", "steps", "retries", "tokens")
    return SummarizedQuestion(
        **in_list(row),
        **{name: row[name] for name in own},
        answers=tuple(row["answers"]),
        seconds=None if row["milliseconds"] is None else row["milliseconds"] / 1000,
        dollars=row["cost"],
    )


Limit = Annotated[int, Meta(ge=1, le=1000)]
Text = Annotated[str, Meta(max_length=200)]
CauseName = Literal[
    "no-answer",
    "answer-form-only",
    "reader-wrong",
    "limit",
    "gold-never-found",
    "found-but-not-shown",
    "contradicted",
    "shown-but-not-used",
    "unexplained",
]


@operation("summaries.index", "GET", "/runs/{run}/summaries", Scope.READ)
def list_summaries(
    run: str,
    outcome: Sequence[Outcome] = (),
    cause: Sequence[CauseName] = (),
    trait: Sequence[Trait] = (),
    status: Sequence[QuestionStatus] = (),
    text: Text = "",
    order: Order = "position",
    limit: Limit = 100,
    after: str | None = None,
) -> QuestionSummaries:
    """List a run's questions by how they came out, with the numbers of each sort.

    outcome, cause, status: those of any of these; trait: those with all of these; text: that the question, its id or
    its answer contains. order: that of their places, or by F1, steps, time or cost, the largest first with a minus:
    then the list has those alone that have ended. after: the question behind which the page begins, by its id or
    number.
    """
    chosen = Chosen(outcomes=outcome, causes=cause, traits=trait, statuses=status, text=text)
    with open_store() as engine:
        summary = summarize_small(engine, run)
    with reading() as connection:
        return read_summaries(connection, summary, chosen, order=order, limit=limit, after=after)
