"""Summaries of questions that have ended, computed from their traces, and of runs all of whose questions have."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import takewhile
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct
from sqlalchemy import Connection, Engine, RowMapping

from cotrail.core.history import LIMIT
from cotrail.core.money import NOTHING_SPENT, Spent
from cotrail.core.results import Generated
from cotrail.evaluation.metrics.answer_metrics import METRICS, main_metrics
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.evaluation.metrics.question_scores import Score, mean_scores
from cotrail.evaluation.metrics.stop_rules import interval_of, rule_of
from cotrail.models.commands.summarizing import VERSION, begin, complete, next_questions, write_counts, write_summaries
from cotrail.models.queries.question_summaries import (
    Chosen,
    SummaryCounts,
    count_summaries,
    list_summarized,
    read_question_scores,
    read_summarized,
)
from cotrail.models.queries.question_summaries import Order as Order
from cotrail.models.queries.question_summaries import Outcome as Outcome
from cotrail.models.queries.question_summaries import Trait as Trait
from cotrail.models.queries.runs import RunRecord, RunSummary, read_run, resolve_run
from cotrail.models.queries.runs import summaries_of as run_summaries
from cotrail.models.queries.spending import read_spent_by_question
from cotrail.models.queries.traces import TracedQuestion, find_question, read_traced
from cotrail.models.records.contents import ParagraphCache
from cotrail.models.records.questions import QuestionInList, in_list
from cotrail.models.schema.states import QuestionStatus, StepState
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.results.causes import details_of, explained, verdict_of
from cotrail.services.runs.scores import scorer_of, without_scores
from cotrail.services.store import open_store, reading, reading_from


class MeanScore(Struct, frozen=True, kw_only=True):
    """A mean with its 95 % interval, None where there is none.

    title, meaning: of the metric; counted: whether it is a number without a bound, rather than a share.
    partial: whether it is of the first questions of a run that is under way.
    """

    metric: str
    title: str
    meaning: str
    mean: float
    low: float | None
    high: float | None
    counted: bool = False
    partial: bool = False


def mean_score(name: str, mean: float, interval: ConfidenceInterval | None, *, partial: bool = False) -> MeanScore:
    """The mean of the metric of this name."""
    metric = METRICS[name]
    return MeanScore(
        metric=name,
        title=metric.title,
        meaning=metric.meaning,
        mean=mean,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        counted=metric.is_count,
        partial=partial,
    )


AT_ONCE = 100
"""The number of questions summarized in one transaction."""

Goes = Callable[[], bool]
"""Says whether to go on."""


def for_seconds(seconds: float) -> Goes:
    """Go on for so long."""
    until = time.monotonic() + seconds
    return lambda: time.monotonic() < until


def summarize(engine: Engine, run_id: str, goes: Goes) -> bool:
    """Summarize the questions of a run that have ended since; returns whether none is left.

    goes: asked before each further chunk; what was done until then is written.
    """
    with engine.begin() as connection:
        begun = begin(connection, run_id, VERSION)
        record = read_run(connection, run_id)
    done, left = 0, True
    for number in _chunks(engine, record):
        done += number
        left = number == AT_ONCE
        if not left or not goes():
            break
    closes = not left and record.digest is not None
    # Where it closes, another process may have been killed before it wrote them.
    if done or begun or closes:
        with engine.begin() as connection:
            write_counts(connection, run_id, msgspec.to_builtins(count_summaries(connection, run_id)))
    if not left and record.digest is not None:
        with engine.begin() as connection:
            complete(connection, record.id, record.digest, scores_of(connection, record))
    return not left


def _chunks(engine: Engine, record: RunRecord) -> Iterator[int]:
    """Summarize a chunk at each `next`; yields its number of questions."""
    score: Score = scorer_of(record) or without_scores
    paragraphs = ParagraphCache()
    while True:
        with reading_from(engine) as connection:
            ended = next_questions(connection, record.id, VERSION, AT_ONCE)
            ids = sorted(each.id for each in ended)
            rows = summaries_of(connection, record, ids, score, paragraphs) if ended else {}
        with engine.begin() as connection:
            write_summaries(connection, record.id, ended, rows)
        yield len(ended)


def summaries_of(
    connection: Connection, record: RunRecord, ids: Sequence[int], score: Score, paragraphs: ParagraphCache
) -> dict[int, Mapping[str, Any]]:
    """The rows of questions that have ended, by their ids, which are sorted as their places are."""
    spent = read_spent_by_question(connection, record.id, ids)
    traced = read_traced(connection, ids, paragraphs)
    return {
        id_: {
            "question_id": id_,
            "run_id": record.id,
            "version": VERSION,
            **_summary(record, question, score(question), spent.get(id_, NOTHING_SPENT)),
        }
        for id_, question in zip(ids, traced, strict=True)
    }


def _summary(record: RunRecord, question: TracedQuestion, scores: QuestionScores, spent: Spent) -> Mapping[str, Any]:
    details = details_of(record, question)
    explanation = explained(record, question, details, scores)
    written = [step.result for step in question.steps if isinstance(step.result, Generated)]
    return {
        "outcome": _outcome(question, verdict_of(question, details, scores), scores),
        "cause": explanation.cause.slug if explanation else None,
        "f1": scores["answer_f1"],
        "recall": scores["paragraph_recall"],
        "scores": {name: value for name, value in scores.items() if value is not None},
        "limited": question.ended_by.startswith(LIMIT),
        "steps": sum(step.state in _DONE for step in question.steps),
        "retries": sum(max(step.attempts - 1, 0) for step in question.steps),
        "tokens": sum(each.prompt_tokens + each.generated_tokens for each in written),
        "milliseconds": sum(step.milliseconds or 0.0 for step in question.steps),
        "cost": spent.dollars,
    }


_DONE = (StepState.FINISHED, StepState.FAILED)


def _outcome(question: TracedQuestion, verdict: str, scores: QuestionScores) -> Outcome:
    if question.status == QuestionStatus.CANCELLED:
        return "cancelled"
    if question.status == QuestionStatus.FAILED:
        return "failed"
    if verdict == "wrong":
        return "partly" if scores["answer_f1"] else "wrong"
    return "right" if verdict == "right" else "unscored"


def scores_of(connection: Connection, record: RunRecord) -> dict[str, Any]:
    """The scores of a run all of whose questions are summarized, by their metrics, as they stand with it."""
    return {each.metric: msgspec.to_builtins(each) for each in _means(connection, record)}


def _means(connection: Connection, record: RunRecord) -> Iterator[MeanScore]:
    """The run's scores, as `cotrail.services.results.scoring` has them."""
    ended = read_question_scores(connection, record.id)
    rule = rule_of(record.provenance)
    # A rule leaves over what follows, and so a gap ends its questions; a budget or a person may leave gaps.
    asked = filter if rule is None else takewhile
    scored = [dict.fromkeys(METRICS) | each.scores for each in asked(lambda each: each.outcome != "cancelled", ended)]
    if rule is not None:
        scored = scored[: rule.stops_after([each[rule.metric] for each in scored])]
    left_over = any(each.outcome == "cancelled" for each in ended)
    means = mean_scores(scored, interval_of(is_fixed=rule is None and not left_over))
    for metric in main_metrics():
        if (mean := means.metrics[metric.name]) is not None:
            yield mean_score(metric.name, mean, means.intervals[metric.name])


SMALL = 200
"""The number of questions that have ended up to which a run is summarized when somebody asks for it."""


def ended(summary: RunSummary) -> int:
    """The number of a run's questions that have ended."""
    open_ones = summary.questions[QuestionStatus.OPEN] + summary.questions[QuestionStatus.BLOCKED]
    return sum(summary.questions.values()) - open_ones


def is_current(row: RowMapping, digest: str | None) -> bool:
    """Whether a run's summaries are by today's rules, and of the run as it is sealed by this digest, or not yet."""
    return bool(row["version"] == VERSION and row["digest"] == digest)


def is_due(connection: Connection, summary: RunSummary) -> bool:
    """Whether questions of the run have ended that aren't summarized, or the run was sealed since."""
    row = read_summarized(connection, [summary.run.id]).get(summary.run.id)
    if row is None or not is_current(row, summary.run.digest):
        return True
    return counts_in(row).questions != ended(summary) or (row["digest"] is not None and not row["complete"])


def counts_in(row: RowMapping | None) -> SummaryCounts:
    """The numbers of a run's summarized questions; none where none is."""
    return msgspec.convert(row["counts"], SummaryCounts, strict=False) if row else SummaryCounts()


# What there is to read of a run's questions, summarized.

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
        [summary] = run_summaries(connection, [resolve_run(connection, run)])
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
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100,
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
