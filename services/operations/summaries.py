"""Summaries: a run's questions by how they came out, and how far runs are."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from cotrail.services.access.actor import Scope
from cotrail.services.lists.question_list import QuestionStatus
from cotrail.services.operations.operation import operation
from cotrail.services.store import open_store, reading
from cotrail.services.views.summarized_questions import (
    Chosen,
    Order,
    Outcome,
    QuestionSummaries,
    Trait,
    read_summaries,
    summarize_small,
)
from cotrail.services.views.summarized_runs import RunStanding, read_standings

Limit = Annotated[int, Meta(ge=1, le=1000)]
Text = Annotated[str, Meta(max_length=200)]
Runs = Annotated[Sequence[str], Meta(max_length=100)]
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


@operation("GET", "/runs/{run}/summaries", Scope.READ)
def index(
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

    outcome, cause, status: those of any of these; trait: those with all of these; text: stands in the question, its id
    or its answer. order: that of their places, or by F1, steps, time or cost, the largest first with a minus: then the
    list has those alone that have ended. after: the question behind which the page begins, by its id or number.
    """
    chosen = Chosen(outcomes=outcome, causes=cause, traits=trait, statuses=status, text=text)
    with open_store() as engine:
        summary = summarize_small(engine, run)
    with reading() as connection:
        return read_summaries(connection, summary, chosen, order=order, limit=limit, after=after)


@operation("GET", "/standings", Scope.READ)
def standings(runs: Runs) -> tuple[RunStanding, ...]:
    """Say how these runs stand: their scores, how fast they are, what they took and who asked for them.

    runs: their ids, 100 at most.
    """
    with open_store() as engine:
        return read_standings(engine, runs)
