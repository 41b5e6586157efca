"""Runs are removed for good, with all that nothing else refers to, beside runs that are under way."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, select, text, update
from typer.testing import CliRunner, Result

from benchmarks.contenders.cotrail import submission
from benchmarks.costless import PARAGRAPHS
from cotrail.cli.main import app
from cotrail.configuration.settings import settings
from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.errors import InputError
from cotrail.models.commands import pruning
from cotrail.models.commands.control import cancel, resume
from cotrail.models.commands.pruning import begun, ended_before, prune, weigh
from cotrail.models.commands.submission import open_experiment, submit
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.records.contents import save_paragraphs
from cotrail.models.schema.base import Base
from cotrail.models.schema.deployment import deployment
from cotrail.models.schema.seals import amending
from cotrail.models.schema.service_tables import projects
from cotrail.models.schema.states import DesiredState
from cotrail.models.schema.tables import paragraphs, questions, runs, steps
from cotrail.systems.registry import find_system
from cotrail.workers.housekeeping import Retention
from tests.integration.conftest import Query
from tests.integration.stepping import LEASE, STEPS, begin, run_to_end, unsent

Rows = dict[str, int]

DIGESTS = {paragraph.digest for paragraph in PARAGRAPHS}
PINNED = PARAGRAPHS[0]


@pytest.fixture
def ledger(engine: Engine) -> Ledger:
    return Ledger(engine, "w", LEASE, find_system)


@pytest.fixture
def finish(engine: Engine, ledger: Ledger) -> Callable[..., None]:
    """Submits a run and carries it out."""

    def finish(run: str, asked: int = 2, **changes: Any) -> None:
        run_to_end(ledger, begin(engine, asked, id=run, **changes))

    return finish


@pytest.fixture
def removed(engine: Engine) -> Callable[..., None]:
    def removed(*run_ids: str) -> None:
        for _ in prune(engine, run_ids):
            pass

    return removed


@pytest.fixture
def cotrail(database: str, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Result]]:
    monkeypatch.setenv("COTRAIL_DATABASE_URL", database)
    settings.cache_clear()
    yield lambda *arguments: CliRunner().invoke(app, ["prune", *arguments])
    settings.cache_clear()


def count_rows(engine: Engine) -> Rows:
    with engine.begin() as connection:
        tables = (table.name for table in Base.metadata.sorted_tables if table not in (projects, deployment))
        counted = {name: f"SELECT count(*) FROM {name}" for name in tables}
        return {name: connection.execute(text(query)).scalar_one() for name, query in counted.items()}


def age(engine: Engine, days: int) -> None:
    """Makes all questions and runs of the store so many days older."""
    with engine.begin() as connection:
        amending(connection)
        past = text(f"interval '{days} days'")
        connection.execute(update(questions).values(finished_at=questions.c.finished_at - past))
        connection.execute(update(runs).values(created_at=runs.c.created_at - past))


def test_nothing_is_left_of_the_only_run(
    engine: Engine, finish: Callable[..., None], removed: Callable[..., None]
) -> None:
    finish("gone")
    removed("gone")
    assert set(count_rows(engine).values()) == {0}


def test_another_run_stays_as_it_is(engine: Engine, finish: Callable[..., None], removed: Callable[..., None]) -> None:
    finish("stays")
    before = count_rows(engine)
    finish("gone", asked=5)
    removed("gone")
    assert count_rows(engine) == before
    with engine.connect() as connection:
        assert [question.divergence for question in replay_run(connection, "stays", find_system)] == ["", ""]


def test_the_weight_says_what_goes(engine: Engine, finish: Callable[..., None]) -> None:
    for run, asked in (("one", 2), ("two", 3)):
        finish(run, asked)
    with engine.connect() as connection:
        one, both = weigh(connection, ["one"]), weigh(connection, ["one", "two"])
    assert (both.runs, both.questions, both.steps) == (2, 5, 5 * STEPS)
    assert one.bytes / both.bytes == pytest.approx(2 / 5, rel=0.05)


def test_a_run_that_hasnt_ended_is_refused_until_it_is_cancelled(
    engine: Engine, finish: Callable[..., None], removed: Callable[..., None]
) -> None:
    finish("ended")
    begin(engine, id="live")
    before = count_rows(engine)
    with pytest.raises(InputError, match="live hasn't ended; `cotrail cancel RUN`"):
        removed("ended", "live")
    assert count_rows(engine) == before
    cancel(engine, "live")
    removed("ended", "live")
    assert count_rows(engine)["runs"] == 0


def test_retention_takes_what_ended_long_ago(engine: Engine, finish: Callable[..., None]) -> None:
    finish("old")
    begin(engine, id="live")
    begin(engine, id="cancelled")
    cancel(engine, "cancelled")
    age(engine, 30)
    finish("new")
    with engine.connect() as connection:
        assert ended_before(connection, 29) == ["old", "cancelled"]
        assert ended_before(connection, 31) == []


def test_broken_off_it_is_known_and_gone_on_with(
    engine: Engine, finish: Callable[..., None], removed: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "QUESTION_CHUNK", 2)
    finish("gone", asked=5)
    assert next(prune(engine, ["gone"])).questions == 2
    assert count_rows(engine)["questions"] == 3
    with engine.connect() as connection:
        assert begun(connection) == ["gone"]
        assert connection.execute(select(runs.c.desired_state)).scalar_one() == DesiredState.PRUNED
    removed("gone")
    assert set(count_rows(engine).values()) == {0}


def test_two_at_once_share_the_work(
    engine: Engine, finish: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "QUESTION_CHUNK", 2)
    finish("gone", asked=5)
    one, other = prune(engine, ["gone"]), prune(engine, ["gone"])
    chunks = [next(one), next(other), *one, *other]
    assert sum(chunk.questions for chunk in chunks) == 5
    assert sum(chunk.runs for chunk in chunks) == 1
    assert set(count_rows(engine).values()) == {0}


def test_a_worker_that_remembers_a_pruned_paragraph_stores_it_again(
    engine: Engine, query: Query, finish: Callable[..., None], removed: Callable[..., None]
) -> None:
    finish("gone")
    removed("gone")
    assert query(select(paragraphs)) == []
    finish("later")
    assert {row["digest"] for row in query(select(paragraphs))} == DIGESTS
    assert {row["status"] for row in query(select(questions))} == {"finished"}


def test_a_paragraph_that_is_about_to_be_referred_to_stays(
    engine: Engine, query: Query, finish: Callable[..., None], removed: Callable[..., None]
) -> None:
    finish("gone")
    with engine.connect() as connection, connection.begin():
        save_paragraphs(connection, {PINNED.digest: PINNED})
        removed("gone")
        assert [row["digest"] for row in query(select(paragraphs))] == [PINNED.digest]


def test_a_pinned_passage_that_another_run_found_stays(
    engine: Engine, query: Query, finish: Callable[..., None], removed: Callable[..., None]
) -> None:
    finish("gone")
    passage = GoldParagraph(title=PINNED.title, text=PINNED.text)
    submit(engine, submission(), [Question(id="q", text="Where?", pinned=passage)], find_system)
    removed("gone")
    run_to_end(Ledger(engine, "another", LEASE, find_system), unsent(engine, "reason"))
    assert [row["status"] for row in query(select(questions))] == ["finished"]
    with engine.connect() as connection:
        assert [question.divergence for question in replay_run(connection, submission().id, find_system)] == [""]


def test_what_was_adopted_stays(engine: Engine, query: Query, ledger: Ledger, removed: Callable[..., None]) -> None:
    open_experiment(engine, "ours", {})
    for run in ("first", "second"):
        run_to_end(ledger, begin(engine, id=run, cell=run, experiment="ours", reuse=True))
    computed_by = {row["adopted_from"] for row in query(select(steps).where(steps.c.run_id == "second"))}
    removed("first")
    left = query(select(steps).where(steps.c.run_id == "second"))
    assert {row["adopted_from"] for row in left} == computed_by
    with engine.connect() as connection:
        assert [question.divergence for question in replay_run(connection, "second", find_system)] == [""]
    removed("second")
    assert set(count_rows(engine).values()) == {0}


def test_a_run_whose_pruning_was_broken_off_is_final(engine: Engine, finish: Callable[..., None]) -> None:
    finish("gone")
    next(prune(engine, ["gone"]))
    with pytest.raises(InputError, match="gone is pruned, which is final"):
        resume(engine, "gone", find_system)


def test_retention_removes_a_little_at_a_time(
    engine: Engine, query: Query, finish: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "QUESTION_CHUNK", 2)
    finish("old", asked=5)
    age(engine, 10)
    finish("new")
    retention = Retention(engine, 9)
    left = []
    for _ in range(7):
        retention.remove_next()
        left.append(count_rows(engine)["questions"])
    assert left == [7, 5, 3, 2, 2, 2, 2]
    assert [row["id"] for row in query(select(runs))] == ["new"]


def test_without_retention_only_what_was_broken_off_goes(
    engine: Engine, query: Query, finish: Callable[..., None]
) -> None:
    for run in ("old", "broken off"):
        finish(run)
    age(engine, 10_000)
    next(prune(engine, ["broken off"]))
    retention = Retention(engine, None)
    for _ in range(4):
        retention.remove_next()
    assert [row["id"] for row in query(select(runs))] == ["old"]


def test_the_command_asks_and_says_what_it_did(
    engine: Engine, cotrail: Callable[..., Result], finish: Callable[..., None]
) -> None:
    finish("gone")
    before = count_rows(engine)
    dry = cotrail("gone", "--dry-run")
    assert f"1 run with {2 * STEPS} steps" in dry.output
    assert cotrail("gone").exit_code != 0
    assert count_rows(engine) == before
    done = cotrail("gone", "--yes")
    assert done.exit_code == 0
    assert "4 paragraphs and 2 sets of demonstrations that nothing else refers to" in " ".join(done.output.split())
    assert set(count_rows(engine).values()) == {0}


def test_the_command_takes_runs_by_their_age(
    engine: Engine, cotrail: Callable[..., Result], finish: Callable[..., None], query: Query
) -> None:
    finish("old")
    age(engine, 10)
    finish("new")
    assert cotrail("--older-than", "9", "--yes").exit_code == 0
    assert [row["id"] for row in query(select(runs))] == ["new"]


def test_without_a_choice_the_command_says_what_to_do(engine: Engine, cotrail: Callable[..., Result]) -> None:
    refused = cotrail("--yes")
    assert isinstance(refused.exception, InputError)
    assert "--older-than DAYS" in str(refused.exception)


def test_paragraphs_of_a_digest_order_are_all_looked_at(
    engine: Engine, removed: Callable[..., None], monkeypatch: pytest.MonkeyPatch, finish: Callable[..., None]
) -> None:
    monkeypatch.setattr(pruning, "PARAGRAPH_CHUNK", 3)
    made = [Paragraph(id="", title=f"Page {n}", text="Text.") for n in range(10)]
    finish("stays")
    with engine.begin() as connection:
        save_paragraphs(connection, {paragraph.digest: paragraph for paragraph in made})
    removed()
    assert count_rows(engine)["paragraphs"] == len(DIGESTS)
