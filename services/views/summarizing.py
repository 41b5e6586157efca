"""Summaries of questions that have ended, computed from their traces, and of runs all of whose questions have."""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Protocol

import msgspec
from sqlalchemy import Connection, Engine

from cotrail.core.ended_by import LIMIT
from cotrail.core.money import NOTHING_SPENT, Spent
from cotrail.core.results import Generated, Result
from cotrail.errors import InputError, UnknownNameError
from cotrail.evaluation.metrics.question_scores import mean_scores, usual_interval
from cotrail.evaluation.metrics.registry import METRICS, main_metrics
from cotrail.evaluation.metrics.scorers import Score, scorer
from cotrail.evaluation.metrics.scores import QuestionScores
from cotrail.evaluation.metrics.stop_rules import rule_of, sequence_interval
from cotrail.models.commands.summarizing import (
    VERSION,
    EndedQuestion,
    begin,
    complete,
    next_questions,
    write_counts,
    write_summaries,
)
from cotrail.models.queries.question_summaries import Outcome, count_summaries, read_question_scores
from cotrail.models.queries.runs import RunRecord, read_run
from cotrail.models.queries.traces import TracedQuestion, read_traced
from cotrail.models.queries.usage import read_spent_by_question
from cotrail.models.records.paragraphs import ParagraphCache
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.views.answer_details import details_of
from cotrail.services.views.mean_score import MeanScore, mean_score
from cotrail.services.views.question_records import explained
from cotrail.services.views.verdicts import verdict_of
from cotrail.systems.registry import recorded_system

AT_ONCE = 100
"""The number of questions summarized in one transaction."""

MAIN = tuple(metric.name for metric in main_metrics())


class Goes(Protocol):
    """Says whether to go on."""

    def __call__(self) -> bool: ...  # noqa: D102


def for_seconds(seconds: float) -> Goes:
    """Go on for so long."""
    until = time.monotonic() + seconds
    return lambda: time.monotonic() < until


def summarize(engine: Engine, run_id: str, goes: Goes) -> bool:
    """Summarize the questions of a run that have ended since; returns whether none is left.

    goes: asked before each further chunk; what was done until then is written.
    """
    with engine.begin() as connection:
        anew = begin(connection, run_id, VERSION)
        record = read_run(connection, run_id)
    done, left = 0, True
    for number in _chunks(engine, record):
        done += number
        left = number == AT_ONCE
        if not left or not goes():
            break
    if done or anew:
        with engine.begin() as connection:
            write_counts(connection, run_id, msgspec.to_builtins(count_summaries(connection, run_id)))
    if not left and record.digest is not None:
        _complete(engine, record, record.digest)
    return not left


def _chunks(engine: Engine, record: RunRecord) -> Iterator[int]:
    """Summarize a chunk at each `next`; yields its number of questions."""
    score, paragraphs = _scorer(record), ParagraphCache()
    while True:
        with engine.connect() as connection:
            ended = next_questions(connection, record.id, VERSION, AT_ONCE)
            rows = _summaries(connection, record, ended, score, paragraphs) if ended else {}
        with engine.begin() as connection:
            write_summaries(connection, record.id, ended, rows)
        yield len(ended)


def _summaries(
    connection: Connection,
    record: RunRecord,
    ended: Sequence[EndedQuestion],
    score: Score,
    paragraphs: ParagraphCache,
) -> dict[int, Mapping[str, Any]]:
    """The rows of these questions, by their ids, which are in the order of the places."""
    ids = sorted(each.id for each in ended)
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
    return {
        "outcome": _outcome(question, verdict_of(question, details, scores), scores),
        "cause": explanation.cause.slug if explanation else None,
        "f1": scores["answer_f1"],
        "recall": scores["paragraph_recall"],
        "scores": {name: value for name, value in scores.items() if value is not None},
        "limited": question.ended_by.startswith(LIMIT),
        "steps": len(question.steps),
        "retries": sum(max(step.attempts - 1, 0) for step in question.steps),
        "tokens": sum(_tokens(step.result) for step in question.steps),
        "milliseconds": sum(step.milliseconds or 0.0 for step in question.steps),
        "cost": spent.dollars,
    }


def _tokens(result: Result | None) -> int:
    return result.prompt_tokens + result.generated_tokens if isinstance(result, Generated) else 0


def _outcome(question: TracedQuestion, verdict: str, scores: QuestionScores) -> Outcome:
    if question.status == QuestionStatus.CANCELLED:
        return "cancelled"
    if question.status == QuestionStatus.FAILED:
        return "failed"
    if verdict == "wrong":
        return "partly" if scores["answer_f1"] else "wrong"
    return "right" if verdict == "right" else "unscored"


def _scorer(record: RunRecord) -> Score:
    """What scores the run's questions; nothing does where this process lacks its dataset."""
    try:
        return scorer(record, recorded_system)
    except (UnknownNameError, InputError):
        return lambda _: dict.fromkeys(METRICS)


def _complete(engine: Engine, record: RunRecord, digest: str) -> None:
    with engine.begin() as connection:
        scores = tuple(_means(connection, record))
        complete(connection, record.id, digest, {each.metric: msgspec.to_builtins(each) for each in scores})


def _means(connection: Connection, record: RunRecord) -> Iterator[MeanScore]:
    """The run's scores, as `cotrail.services.views.scoring` has them."""
    ended = read_question_scores(connection, record.id)
    scored = [dict.fromkeys(METRICS) | each.scores for each in ended]
    rule, interval = rule_of(record.provenance), usual_interval
    if rule is not None:
        interval = sequence_interval
        asked = scored[: sum(1 for _ in takewhile(lambda each: each.outcome != "cancelled", ended))]
        scored = asked[: rule.stops_after([each[rule.metric] for each in asked])]
    means = mean_scores(scored, interval)
    for name in MAIN:
        if (mean := means.metrics[name]) is not None:
            yield mean_score(name, mean, means.intervals[name])
