"""Runs that stop by a rule, against a real PostgreSQL: where they stop, whoever is killed meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, select

from benchmarks.contenders.cotrail import submission
from cotrail.core.questions import Question
from cotrail.core.results import Failure
from cotrail.errors import InputError
from cotrail.evaluation.metrics.question_scores import scorer
from cotrail.evaluation.metrics.stop_rules import UNTIL, StopRule
from cotrail.models.commands.control import cancel
from cotrail.models.commands.retrying import end_unbegun
from cotrail.models.commands.submission import submit
from cotrail.models.execution.admission import admit
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.outcomes import Prefix
from cotrail.models.queries.progress import read_progress
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.queries.runs import read_run
from cotrail.models.schema.tables import questions, runs
from cotrail.services.results.scoring import read_scores
from cotrail.services.runs.pinning import check_measurable, in_random_order
from cotrail.services.runs.progress import PartialScores, RunReading, partial_line, read_again, run_progress
from cotrail.services.runs.scores import scores_by_question
from cotrail.services.runs.speed import WatchedRun
from cotrail.services.runs.watching import watch
from cotrail.systems.registry import find_system, recorded_system
from cotrail.workers.housekeeping import Stopping
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import LEASE, close_runs, completed, run_to_end

pytestmark = pytest.mark.usefixtures("verified")

RUN = submission().id
RULE = "width(answer_f1) < 0.5"
STOP = 16
"""The number of right answers after which the interval is narrower than that."""

ENDED_BY = f"until: {RULE}"


def asked(number: int, answer: str = "Grayle") -> list[Question]:
    """Questions that the costless model answers rightly, unless another answer is published."""
    return [Question(id=f"q{n}", text=f"Where was builder {n} born?", answers=(answer,)) for n in range(number)]


def begin(engine: Engine, number: int, rule: str = RULE) -> None:
    submit(engine, replace(submission(), provenance={UNTIL: rule}), asked(number), find_system)


def work(engine: Engine, maintenance: Callable[[], Stopping], window: int = 8) -> None:
    """Admits and carries out questions, a few at a time, until none waits; each look is a maintenance process's."""
    ledger = Ledger(engine, "w", LEASE, find_system)
    while True:
        ending = end_unbegun(engine, maintenance().stopped())
        with engine.begin() as connection:
            messages = admit(connection, ending)
        if not messages:
            return
        for start in range(0, len(messages), window):
            run_to_end(ledger, messages[start : start + window])


def ends(query: Query) -> list[tuple[str, str | None]]:
    rows = query(select(questions).order_by(questions.c.position))
    return [(row["status"], row["ended_by"]) for row in rows]


def test_a_run_stops_once_its_rule_is_met_and_ends_what_has_not_begun(engine: Engine, query: Query) -> None:
    begin(engine, 60)
    stopping = Stopping(engine)
    work(engine, lambda: stopping)
    told = ends(query)
    answered = [end for end in told if end == ("finished", "answer")]
    assert STOP <= len(answered) < 60
    assert told == answered + [("cancelled", ENDED_BY)] * (60 - len(answered))
    assert stopping.stopped() == {}
    assert end_unbegun(engine, {RUN: RULE}) == []
    assert close_runs(engine) == [RUN]
    with engine.connect() as connection:
        assert [each for each in replay_run(connection, RUN, find_system) if each.divergence] == []
        progress = read_progress(connection, RUN)
    assert progress.ends == {"answer": len(answered), ENDED_BY: 60 - len(answered)}
    assert run_progress(progress).complete


def test_its_score_is_that_of_the_questions_that_the_rule_looked_at(
    engine: Engine, query: Query, cotrail: Cotrail
) -> None:
    begin(engine, 60)
    stopping = Stopping(engine)
    work(engine, lambda: stopping)
    with engine.connect() as connection:
        scores = read_scores(connection, RUN)
        by_question = scores_by_question(connection, read_run(connection, RUN))
    assert scores.until is not None
    assert (scores.until.met, scores.until.questions) == (True, STOP)
    interval = scores.intervals["answer_f1"]
    assert interval is not None
    assert (interval.questions, interval.method) == (STOP, "empirical-bernstein")
    assert interval.high - interval.low < 0.5
    assert scores.metrics["answer_f1"] == 1
    assert scores.intervals["paragraphs_collected"] is None
    assert list(by_question) == [f"q{n}" for n in range(sum(end == ("finished", "answer") for end in ends(query)))]
    shown = cotrail("score", RUN)
    assert f"stopped by {RULE} after {STOP} of 60 questions" in shown.output
    assert f"{RULE}" in cotrail("show", RUN).output


def test_a_rule_that_is_never_met_has_all_questions_asked(engine: Engine, query: Query, cotrail: Cotrail) -> None:
    begin(engine, 12)
    stopping = Stopping(engine)
    work(engine, lambda: stopping)
    assert ends(query) == [("finished", "answer")] * 12
    with engine.connect() as connection:
        until = read_scores(connection, RUN).until
    assert until is not None
    assert (until.met, until.questions) == (False, 12)
    assert f"{RULE} isn't met after 12 of 12 questions" in cotrail("score", RUN).output


def test_a_maintenance_that_is_started_anew_at_each_look_stops_at_the_same_question(
    engine: Engine, query: Query
) -> None:
    """What a process holds of a rule follows from the store: one that was killed left nothing that is missed."""
    begin(engine, 60)
    work(engine, lambda: Stopping(engine))
    assert ("cancelled", ENDED_BY) in ends(query)
    with engine.connect() as connection:
        until = read_scores(connection, RUN).until
    assert until is not None
    assert until.questions == STOP


def test_one_that_dies_between_two_chunks_is_continued_by_the_next(
    engine: Engine, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(engine, 300)
    ledger = Ledger(engine, "w", LEASE, find_system)
    with engine.begin() as connection:
        messages = admit(connection)
    run_to_end(ledger, messages)
    monkeypatch.setattr("cotrail.models.commands.retrying.ENDING_SECONDS", 0)
    assert end_unbegun(engine, Stopping(engine).stopped()) == [RUN]
    half = ends(query).count(("cancelled", ENDED_BY))
    assert 0 < half < 300 - len(messages)
    # The next one, and another that believes it leads too.
    for stopping in (Stopping(engine), Stopping(engine)) * 3:
        end_unbegun(engine, stopping.stopped())
    assert ends(query).count(("cancelled", ENDED_BY)) == 300 - len(messages)
    assert ends(query).count(("finished", "answer")) == len(messages)
    assert close_runs(engine) == [RUN]


def test_failures_count_0_and_an_open_question_ends_the_prefix(engine: Engine) -> None:
    begin(engine, 6)
    ledger = Ledger(engine, "w", LEASE, find_system)
    with engine.begin() as connection:
        first, second, third, *_ = admit(connection)
    run_to_end(ledger, [first])
    [claim] = ledger.claim([second])
    ledger.commit([completed(claim, Failure(type="IndexBroken", message="gone"))])
    with engine.connect() as connection:
        prefix = Prefix(RUN, scorer(read_run(connection, RUN), recorded_system, ["answer_f1"]), ["answer_f1"])
        prefix.advance(connection, 60)
        assert prefix.scores == {"answer_f1": [1.0, 0.0]}
        assert read_scores(connection, RUN).metrics["answer_f1"] == 0.5
    run_to_end(ledger, [third])
    with engine.connect() as connection:
        prefix.advance(connection, 60)
    assert prefix.scores == {"answer_f1": [1.0, 0.0, 1.0]}


def test_a_run_that_is_cancelled_by_hand_is_scored_by_the_questions_before(engine: Engine) -> None:
    begin(engine, 6)
    with engine.begin() as connection:
        first, *_ = admit(connection)
    run_to_end(Ledger(engine, "w", LEASE, find_system), [first])
    cancel(engine, RUN)
    with engine.connect() as connection:
        scores = read_scores(connection, RUN)
    assert scores.until is not None
    assert (scores.until.questions, scores.metrics["answer_f1"]) == (1, 1.0)


def test_partial_scores_are_those_of_the_first_questions_read_once_each(engine: Engine) -> None:
    begin(engine, 6)
    ledger = Ledger(engine, "w", LEASE, find_system)
    with engine.begin() as connection:
        messages = admit(connection)
    with engine.connect() as connection:
        partial = PartialScores(read_run(connection, RUN))
        assert partial_line(partial.look(connection)) == ""
    run_to_end(ledger, [messages[0], messages[1], messages[3]])
    with engine.connect() as connection:
        scores = partial.look(connection)
        assert [each.metric for each in scores] == ["answer_f1", "answer_em", "cover_em"]
        assert {each.interval.questions for each in scores} == {2}
        whole = read_scores(connection, RUN)
    f1 = scores[0]
    assert (f1.mean, f1.interval) == (whole.metrics["answer_f1"], whole.intervals["answer_f1"])
    assert partial_line(scores).startswith("answer F1 so far 100.0 % (")
    assert partial_line(scores).endswith(" over the first 2 questions")


@pytest.mark.parametrize("lacking", [{"dataset": "elsewhere"}, {"provenance": {UNTIL: "width(unheard_of) < 0.5"}}])
def test_a_rule_that_maintenance_cannot_look_at_stops_no_run_and_nothing_else(
    engine: Engine, query: Query, lacking: dict[str, Any]
) -> None:
    """The process may lack an extension that the one that submitted the run had."""
    submit(engine, replace(submission(), **({"provenance": {UNTIL: RULE}} | lacking)), asked(3), find_system)
    stopping = Stopping(engine)
    work(engine, lambda: stopping)
    assert ends(query) == [("finished", "answer")] * 3


def test_the_rule_is_sealed(engine: Engine, query: Query) -> None:
    begin(engine, 2)
    [row] = query(select(runs.c.provenance))
    assert row["provenance"][UNTIL] == RULE


def test_questions_are_put_into_an_order_that_the_seed_draws() -> None:
    given = asked(200)
    order = in_random_order(given, 7)
    assert sorted(each.id for each in order) == sorted(each.id for each in given)
    assert order == in_random_order(given, 7)
    assert order != in_random_order(given, 8)
    assert order != tuple(given)


def test_a_metric_that_no_question_has_is_refused() -> None:
    with pytest.raises(InputError, match="none of its questions has paragraph_recall"):
        check_measurable(StopRule("paragraph_recall", 0.1), submission(), asked(3))
    check_measurable(StopRule("answer_f1", 0.1), submission(), [Question(id="q", text="?"), *asked(1)])


def test_watching_gives_the_scores_that_were_seen_last(engine: Engine) -> None:
    begin(engine, 3)
    with engine.begin() as connection:
        messages = admit(connection)
    run_to_end(Ledger(engine, "w", LEASE, find_system), messages)
    shown: list[WatchedRun] = []

    def read(run: str) -> RunReading:
        with engine.connect() as connection:
            return read_again(connection, run)

    progress = watch(RUN, read, shown.append)
    assert [each.mean for each in progress.scores] == [1.0, 1.0, 1.0]
    assert {each.interval.questions for each in progress.scores} == {3}
    assert [each.progress for each in shown] == [progress]
