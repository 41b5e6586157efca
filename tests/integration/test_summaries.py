"""Summaries of questions that have ended: how they came out, made from their traces and again when these change."""

from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, delete, func, literal_column, select, update

from benchmarks.contenders.cotrail import submission
from cotrail.core.results import Failure
from cotrail.evaluation.causes.cause import Cause
from cotrail.evaluation.metrics.answer_metrics import main_metrics
from cotrail.models.commands.control import cancel
from cotrail.models.commands.pruning import prune
from cotrail.models.commands.retrying import retry
from cotrail.models.commands.submission import submit
from cotrail.models.commands.summarizing import VERSION, due_runs, forget_summaries, next_questions, write_summaries
from cotrail.models.commands.summarizing import begin as begin_run
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.question_summaries import Chosen, Order
from cotrail.models.queries.runs import read_run, summaries_of
from cotrail.models.schema.database import SUMMARIZER
from cotrail.models.schema.service_tables import question_summaries, run_summaries
from cotrail.models.schema.tables import questions
from cotrail.services.results import auditing
from cotrail.services.results.auditing import summary_findings
from cotrail.services.results.runs import show_standings
from cotrail.services.results.scoring import read_scores
from cotrail.services.results.summarizing import QuestionSummaries, read_summaries, summarize, summarize_small
from cotrail.services.runs.scores import scored_questions
from cotrail.systems.registry import find_system
from cotrail.workers.housekeeping import SummaryRunner
from tests.conftest import Eventually
from tests.integration.stepping import LEASE, STEPS, ask, begin, close_runs, completed, run_to_end, unsent
from tests.integration.test_causes import RUN, SCRIPTS, towns

__all__ = ["towns"]


def whole(engine: Engine, run: str) -> bool:
    return summarize(engine, run, lambda: True)


def page(engine: Engine, run: str = RUN, *, order: Order = "position", after: str | None = None, **by: Any) -> Any:
    with engine.connect() as connection:
        [summary] = summaries_of(connection, [run])
        return read_summaries(connection, summary, Chosen(**by), order=order, limit=100, after=after)


def keys(found: QuestionSummaries) -> list[str]:
    return [each.question_id for each in found.questions]


def due(engine: Engine, version: int = VERSION) -> list[str]:
    with engine.connect() as connection:
        return due_runs(connection, version, 10)


def summarized(engine: Engine) -> int:
    with engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(question_summaries)).scalar_one()


def test_questions_are_found_by_how_they_came_out(towns: Engine) -> None:
    assert due(towns) == [RUN]
    assert whole(towns, RUN)
    found = page(towns)
    assert keys(found) == list(SCRIPTS)
    assert {each.question_id: each.cause for each in found.questions} == {
        key: script.cause.slug if script.cause else None for key, script in SCRIPTS.items()
    }
    assert found.counts.outcomes == {"right": 1, "partly": 1, "wrong": 6, "failed": 1}
    assert found.waiting == 0
    assert keys(page(towns, outcomes=["right"])) == ["right"]
    assert keys(page(towns, outcomes=["partly", "failed"])) == ["form", "failed"]
    assert keys(page(towns, causes=[Cause.READER.slug, Cause.LIMIT.slug])) == ["reader", "limit"]
    assert keys(page(towns, traits=["gold-missing"])) == ["missing", "failed"]
    assert keys(page(towns, traits=["gold-missing"], outcomes=["wrong"])) == ["missing"]
    assert keys(page(towns, traits=["limited"])) == ["limit"]
    assert keys(page(towns, text="(HIDDEN)")) == ["hidden"]
    assert keys(page(towns, text="100%")) == []
    assert keys(page(towns, statuses=["failed"])) == ["failed"]
    assert found.counts.traits["gold-missing"] == 2


def test_pages_of_every_order_follow_one_another(towns: Engine) -> None:
    whole(towns, RUN)
    for order in ("position", "score", "-score", "steps", "-steps", "time", "-time", "cost", "-cost"):
        listed, after = [], None
        with towns.connect() as connection:
            [summary] = summaries_of(connection, [RUN])
            while True:
                found = read_summaries(connection, summary, Chosen(), order=order, limit=2, after=after)
                listed += keys(found)
                after = found.after
                if after is None:
                    break
        assert sorted(listed) == sorted(SCRIPTS), order
        assert listed == keys(page(towns, order=order)), order
    assert keys(page(towns, order="-score"))[0] == "right"
    steps = [each.steps for each in page(towns, order="-steps").questions]
    assert steps == sorted(steps, reverse=True)


@pytest.mark.usefixtures("cotrail")
def test_a_closed_run_is_complete_and_has_its_scores(towns: Engine) -> None:
    whole(towns, RUN)
    assert due(towns) == []
    [standing] = show_standings([RUN])
    with towns.connect() as connection:
        scores = read_scores(connection, RUN)
    assert {each.metric: each.mean for each in standing.scores} == {
        each.name: scores.metrics[each.name] for each in main_metrics() if scores.metrics[each.name] is not None
    }
    for each in standing.scores:
        interval = scores.intervals[each.metric]
        assert interval is None or (each.low, each.high) == (interval.low, interval.high)
    assert not standing.scores[0].partial
    assert due(towns, VERSION + 1) == [RUN]


def test_what_is_opened_again_is_summarized_anew(towns: Engine) -> None:
    whole(towns, RUN)
    retry(towns, RUN, find_system, failed=True, blocked=False)
    assert summarized(towns) == len(SCRIPTS) - 1
    summarize_small(towns, RUN)
    assert page(towns).counts.outcomes == {"right": 1, "partly": 1, "wrong": 6}
    run_to_end(Ledger(towns, "w", LEASE, find_system), unsent(towns))
    summarize_small(towns, RUN)
    again = {each.question_id: each for each in page(towns).questions}["failed"]
    assert (again.outcome, again.retries) == ("wrong", 1)
    assert close_runs(towns) == [RUN]
    assert due(towns) == [RUN]
    whole(towns, RUN)
    assert due(towns) == []


def test_a_question_opened_again_meanwhile_is_left_out(towns: Engine) -> None:
    whole(towns, RUN)
    with towns.begin() as connection:
        columns = [each for each in question_summaries.c if not each.computed]
        rows = {row["question_id"]: dict(row) for row in connection.execute(select(*columns)).mappings()}
        assert begin_run(connection, RUN, VERSION + 1)
        ended = next_questions(connection, RUN, VERSION + 1, 100)
    assert len(ended) == len(SCRIPTS)
    retry(towns, RUN, find_system, failed=True, blocked=False)
    with towns.begin() as connection:
        write_summaries(connection, RUN, ended, rows)
    assert summarized(towns) == len(SCRIPTS) - 1


def test_a_run_under_way_is_summarized_as_far_as_it_is(engine: Engine) -> None:
    first, second, *_ = begin(engine, 3, id="live")
    ledger = Ledger(engine, "w", LEASE, find_system)
    assert due(engine) == []
    run_to_end(ledger, [first])
    assert due(engine) == ["live"]
    assert whole(engine, "live")
    assert due(engine) == []
    found = page(engine, "live")
    assert [each.outcome is None for each in found.questions] == [False, True, True]
    assert found.statuses["open"] == 2
    [claim] = ledger.claim([second])
    ledger.commit([completed(claim, Failure(type="IndexBroken", message="it is gone"))])
    assert due(engine) == ["live"]
    cancel(engine, "live")
    summarize_small(engine, "live")
    assert page(engine, "live").counts.outcomes == {"unscored": 1, "failed": 1, "cancelled": 1}


def test_what_was_never_asked_has_no_scores_and_no_steps(engine: Engine) -> None:
    """In lists, and where each question is scored, as in traces and exports; a step that never began isn't done."""
    asked = [replace(each, answers=("Grayle",)) for each in ask(2)]
    submit(engine, replace(submission(), id="left"), asked, find_system)
    run_to_end(Ledger(engine, "w", LEASE, find_system), unsent(engine)[:1])
    cancel(engine, "left")
    whole(engine, "left")
    answered, left = page(engine, "left").questions
    assert (answered.f1, answered.steps) == (1.0, STEPS)
    assert (left.outcome, left.f1, left.recall, left.steps) == ("cancelled", None, None, 0)
    assert page(engine, "left").counts.steps == STEPS
    with engine.connect() as connection:
        _, scored = scored_questions(connection, read_run(connection, "left"))
    assert set(scored.scores.values()) == {None}


def test_pruning_removes_summaries(towns: Engine) -> None:
    whole(towns, RUN)
    list(prune(towns, [RUN]))
    with towns.connect() as connection:
        left = [
            connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (question_summaries, run_summaries)
        ]
    assert left == [0, 0]


@pytest.mark.usefixtures("cotrail")
def test_a_run_whose_dataset_is_not_there_has_no_scores(engine: Engine) -> None:
    submit(engine, replace(submission(), id="other", dataset="of another release"), ask(1), find_system)
    run_to_end(Ledger(engine, "w", LEASE, find_system), unsent(engine))
    close_runs(engine)
    assert whole(engine, "other")
    [standing] = show_standings(["other"])
    assert standing.scores == ()
    assert standing.counts.outcomes == {"unscored": 1}
    with engine.connect() as connection:
        assert read_run(connection, "other").digest


def test_a_process_beside_maintenance_summarizes_what_has_ended(
    towns: Engine, database: str, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTRAIL_DATABASE_URL", database.replace("+psycopg", ""))
    runner = SummaryRunner(towns, look=0.1)
    runner.start()
    try:
        eventually(lambda: due(towns) == [], "all is summarized")
        with towns.connect() as connection:
            assert not connection.execute(select(func.pg_try_advisory_xact_lock(SUMMARIZER))).scalar()
    finally:
        runner.stop()
    assert summarized(towns) == len(SCRIPTS)
    with towns.connect() as connection:
        eventually(
            lambda: connection.execute(select(func.pg_try_advisory_xact_lock(SUMMARIZER))).scalar(), "it has ended"
        )


def verified(engine: Engine) -> list[tuple[str, str | None, str | None]]:
    """The table, the question and the column of each finding."""
    with engine.connect() as connection:
        return [(each.table, each.question, each.column) for each in summary_findings(connection, RUN)]


def test_what_is_shown_is_verified_by_the_record_it_was_computed_from(towns: Engine) -> None:
    """Whatever of it is changed by SQL, the verification of the record says so."""
    whole(towns, RUN)
    assert verified(towns) == []
    values: dict[str, Any] = {
        "outcome": "right",
        "cause": "reader",
        "f1": 0.123,
        "recall": 0.123,
        "limited": ~question_summaries.c.limited,
        "steps": 77,
        "retries": 77,
        "tokens": 77,
        "milliseconds": 77.5,
        "cost": 77,
        "scores": func.jsonb_set(question_summaries.c.scores, literal_column("'{answer_f1}', '0.123'")),
    }
    columns = {each.name for each in question_summaries.c if not each.computed and not each.primary_key}
    values["version"] = VERSION + 1
    assert values.keys() == columns - {"run_id"}
    with towns.connect() as connection:
        question = connection.execute(select(questions.c.id).where(questions.c.key == "hidden")).scalar_one()
    own = question_summaries.c.question_id == question
    for name, value in values.items():
        with towns.begin() as connection:
            connection.execute(update(question_summaries).where(own).values({name: value}))
        assert ("question_summaries", "hidden", name) in verified(towns), name
        with towns.begin() as connection:
            forget_summaries(connection, [question])
        whole(towns, RUN)
        assert verified(towns) == [], name


def test_what_stands_with_a_run_is_verified_by_its_questions(towns: Engine) -> None:
    whole(towns, RUN)
    for name, value in (
        ("scores", func.jsonb_set(run_summaries.c.scores, literal_column("'{answer_f1,mean}', '1.0'"))),
        ("counts", func.jsonb_set(run_summaries.c.counts, literal_column("'{outcomes,right}', '9'"))),
    ):
        with towns.connect() as connection, connection.begin() as changing:
            connection.execute(update(run_summaries).values({name: value}))
            found = [(each.table, each.column) for each in summary_findings(connection, RUN)]
            changing.rollback()
        assert found == [("run_summaries", name)]
    with towns.connect() as connection, connection.begin() as changing:
        connection.execute(update(question_summaries).values(f1=1.0))
        run, records = auditing.trail(connection, RUN)
        checked = auditing.with_summaries(connection, run, auditing.verify(records))
        changing.rollback()
    assert {(each.table, each.column) for each in checked.findings} == {("question_summaries", "f1")}
    with towns.connect() as connection, connection.begin() as changing:
        connection.execute(delete(question_summaries).where(question_summaries.c.outcome == "failed"))
        found = [(each.table, each.column) for each in summary_findings(connection, RUN)]
        changing.rollback()
    assert ("question_summaries", None) in found
    assert verified(towns) == []


def test_a_process_without_the_run_s_dataset_accuses_nobody(towns: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    whole(towns, RUN)
    with monkeypatch.context() as checking:
        checking.setattr("cotrail.services.results.auditing.scorer_of", lambda _: None)
        assert verified(towns) == []
    with towns.begin() as connection:
        forget_summaries(connection, list(connection.execute(select(questions.c.id)).scalars()))
    with monkeypatch.context() as summarizing:
        summarizing.setattr("cotrail.services.results.summarizing.scorer_of", lambda _: None)
        whole(towns, RUN)
    with towns.connect() as connection:
        assert "right" not in connection.execute(select(question_summaries.c.outcome)).scalars().all()
    assert verified(towns) == []
