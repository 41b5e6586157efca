"""Outcomes against whole traces: what scores take of a question is the same, read without its steps."""

import os
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from sqlalchemy import Connection, Engine, select, text

from benchmarks.contenders.cotrail import submission
from benchmarks.made_run import make_run
from cotrail.core.questions import GoldParagraph, Hit, Paragraph, Question
from cotrail.core.results import Retrieved
from cotrail.evaluation.metrics.question_scores import KindedScores
from cotrail.models.commands.submission import submit
from cotrail.models.execution.leases import Claim, Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.outcomes import outcomes_of
from cotrail.models.queries.runs import read_run
from cotrail.models.queries.traces import read_questions
from cotrail.models.records.questions import read_question_ids
from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.tables import runs
from cotrail.services.runs import scores as module
from cotrail.services.runs.scores import kinded_scores, scored_questions, scores_by_question
from cotrail.systems.registry import find_system
from tests.integration.stepping import LEASE, completed, unsent

FIELDS = ("key", "answers", "gold", "pinned", "kinds", "status", "answer", "stated", "ended_by")
SEARCHED = ("Ink", "Pen", "Ínk", "in k", "")
TEXTS = ("Stains.", "It stains  paper, the US's.", "S tains.", "\u201cStains.\u201d & more", "日本の首都")
_number = count()

paragraphs = st.builds(
    Paragraph, id=st.sampled_from("abc"), title=st.sampled_from(SEARCHED), text=st.sampled_from(TEXTS)
)
gold = st.builds(
    GoldParagraph,
    id=st.sampled_from("abc"),
    title=st.sampled_from(SEARCHED),
    text=st.sampled_from(TEXTS),
    by=st.sampled_from(("content", "id", "title")),
    grade=st.integers(1, 3),
)
answers = st.sampled_from(("Grayle", "grayle!", "the US", '["stains", "Grayle"]', "paper", "日本", ""))
asked = st.builds(
    Question,
    id=st.just("q"),
    text=st.just("Where?"),
    answers=st.lists(answers, max_size=2).map(tuple),
    gold=st.lists(gold, max_size=3).map(tuple),
    kinds=st.dictionaries(st.just("type"), st.sampled_from(("bridge", "comparison"))),
)


def by_traces(connection: Connection, run: str) -> dict[str, KindedScores]:
    record = read_run(connection, run)
    asked = (each for each in read_questions(connection, run) if each.status != QuestionStatus.CANCELLED)
    return {each.key: kinded_scores(record, each) for each in asked}


def test_of_all_that_may_happen_to_a_question_it_is_the_same(store: Engine) -> None:
    with store.connect() as connection:
        for run in connection.execute(select(runs.c.id)).scalars().all():
            outcomes = list(outcomes_of(connection, read_question_ids(connection, run)))
            traced = list(read_questions(connection, run))
            assert len(outcomes) == len(traced) > 0
            for outcome, whole in zip(outcomes, traced, strict=True):
                told = {name: getattr(outcome, name) for name in FIELDS}
                # Of a question that failed before this was recorded, a trace tells what the reason says.
                assert told == {name: getattr(whole, name) for name in FIELDS} | {"ended_by": told["ended_by"]}
                assert [each.digest for each in outcome.paragraphs] == [each.digest for each in whole.paragraphs]
            assert scores_by_question(connection, read_run(connection, run)) == by_traces(connection, run)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked, st.lists(st.lists(paragraphs, max_size=4), min_size=3, max_size=3), st.integers(0, 7))
def test_scores_are_the_same_bit_for_bit(
    engine: Engine, question: Question, found: list[list[Paragraph]], until: int
) -> None:
    """Of questions that searched for anything, and got as far as any step."""
    run = f"run-{next(_number)}"
    submit(engine, replace(submission(), id=run), [question], find_system)
    ledger, messages, searches = Ledger(engine, "w", LEASE, find_system), unsent(engine), iter(found)
    for _ in range(until):
        if messages:
            [claim] = ledger.claim(messages)
            [messages] = ledger.commit([searched(claim, searches)])
    with engine.connect() as connection:
        assert scores_by_question(connection, read_run(connection, run)) == by_traces(connection, run)


def searched(claim: Claim | None, searches: Iterator[list[Paragraph]]) -> Completion:
    """The outcome of a step: of a search, the paragraphs that are next."""
    done = completed(claim)
    if not isinstance(done.outcome, Retrieved):
        return done
    hits = [Hit(paragraph=each, rank=rank, score=1.0) for rank, each in enumerate(next(searches), start=1)]
    return replace(done, outcome=Retrieved(hits=tuple(hits)))


def test_the_benchmark_s_run_has_the_same_scores_in_both_ways(engine: Engine) -> None:
    run = make_run(engine, 60, 100)
    with engine.connect() as connection:
        scores = scores_by_question(connection, read_run(connection, run))
        assert len(scores) == 60
        assert scores == by_traces(connection, run)


def test_processes_that_score_a_run_together_see_one_snapshot_and_keep_the_order(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(engine, 60, 100)
    with engine.connect() as connection:
        connection.execution_options(isolation_level="REPEATABLE READ")
        record = read_run(connection, run)
        alone = scored_questions(connection, record)
        with engine.begin() as other:
            other.execute(text("SET LOCAL session_replication_role = 'replica'"))
            other.execute(text("DELETE FROM questions"))
        monkeypatch.setattr(module, "PART_QUESTIONS", 20)
        monkeypatch.setattr(os, "cpu_count", lambda: 3)
        assert scored_questions(connection, record) == alone
    assert [each.key for each in alone] == [f"q{number}" for number in range(60)]
