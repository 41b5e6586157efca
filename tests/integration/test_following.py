"""Following runs: every event once and in one order, for whoever comes when, whatever commits late."""

import asyncio
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from redis import Redis
from sqlalchemy import Connection, Engine, event, select, text

from cotrail.configuration.settings import Settings, settings
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.events import (
    _OF_RUNS,
    START,
    Position,
    QuestionChanged,
    StepEnded,
    Subject,
    read_events,
    read_position,
)
from cotrail.models.schema.migrating import migrate
from cotrail.models.schema.seals import amending
from cotrail.models.schema.tables import steps
from cotrail.services.runs import following, live_hub
from cotrail.services.runs.following import Following, question_events, run_events
from cotrail.services.runs.live_events import Ended, LiveEvent, Progressed, Token, channel
from cotrail.services.runs.live_hub import Hub, Subscriber
from cotrail.services.store import reading
from cotrail.systems.registry import find_system
from tests.conftest import wait_until
from tests.integration.stepping import LEASE, STEPS, begin, run_to_end

RUN = "followed"

pytestmark = pytest.mark.usefixtures("cotrail")


@pytest.fixture
def ledger(engine: Engine) -> Ledger:
    return Ledger(engine, "w", LEASE, find_system)


def record(connection: Connection, after: Position = START) -> list[Any]:
    return [each for _, each in read_events(connection, {Subject(RUN): after}, 10_000).get(Subject(RUN), ())]


def recorded(engine: Engine) -> list[Any]:
    with engine.connect() as connection:
        return record(connection)


def numbered(events: Iterable[LiveEvent]) -> list[LiveEvent]:
    """The events that are a part of the record."""
    return [each for each in events if each.id]


def test_what_commits_late_is_told_late_and_nothing_is_told_before_it(engine: Engine, ledger: Ledger) -> None:
    begin(engine, 2, id=RUN)
    told = recorded(engine)
    with engine.begin() as late:
        late.execute(text("UPDATE questions SET status = 'blocked' WHERE key = 'q0'"))
        with engine.begin() as early:
            early.execute(text("UPDATE questions SET status = 'blocked' WHERE key = 'q1'"))
        with engine.connect() as reader:
            seen = reader.execute(text("SELECT status FROM questions ORDER BY id")).scalars().all()
            assert seen == ["open", "blocked"]
            assert record(reader, read_position(told[-1].id)) == []
    with engine.connect() as reader:
        further = record(reader, read_position(told[-1].id))
    assert [each.question for each in further] == ["q0", "q1"]


def test_reports_and_exports_hold_nobody_back(engine: Engine, ledger: Ledger) -> None:
    messages = begin(engine, 1, id=RUN)
    with reading() as report:
        report.execute(select(steps)).all()
        run_to_end(ledger, messages)
        assert len(recorded(engine)) == STEPS + 1


def test_a_run_is_told_from_whichever_event_to_its_end(engine: Engine, ledger: Ledger) -> None:
    run_to_end(ledger, begin(engine, 2, id=RUN))
    events = list(following.run_events(RUN))
    *told, progress, end = events
    assert told == recorded(engine)
    assert [type(each) for each in told] == [StepEnded] * 2 * STEPS + [QuestionChanged] * 2
    assert isinstance(progress, Progressed)
    assert (progress.state, progress.steps, progress.questions["finished"]) == ("finished", 2 * STEPS, 2)
    assert end == Ended(state="finished")
    for place, each in enumerate(told):
        assert list(following.run_events(RUN, after=each.id)) == events[place + 1 :]


def test_a_question_is_told_alone(engine: Engine, ledger: Ledger) -> None:
    run_to_end(ledger, begin(engine, 3, id=RUN))
    *told, end = following.question_events(RUN, "2")
    assert told == [each for each in recorded(engine) if each.question == "q1"]
    assert end == Ended(state="finished")


def test_an_id_of_another_server_begins_anew(engine: Engine, ledger: Ledger) -> None:
    run_to_end(ledger, begin(engine, 1, id=RUN))
    assert numbered(following.run_events(RUN, after="99999999999.s.1")) == recorded(engine)


def test_followers_that_come_and_go_while_workers_work_miss_and_repeat_nothing(engine: Engine, ledger: Ledger) -> None:
    messages = begin(engine, 12, id=RUN)
    with ThreadPoolExecutor(2) as pool:
        patient = pool.submit(lambda: numbered(following.run_events(RUN)))
        working = pool.submit(run_to_end, ledger, messages)
        hasty = list(numbered(hasty_events()))
        working.result()
    for told in (patient.result(), hasty):
        places = [read_position(each.id) for each in told]
        assert places == sorted(set(places))
        # What changed while it was followed was told before and after.
        assert [each for each in told if getattr(each, "status", "") != "open"] == recorded(engine)


def hasty_events() -> Iterator[LiveEvent]:
    """The events of a follower that hangs up after each."""
    last = None
    while True:
        for each in following.run_events(RUN, after=last):
            yield each
            last = each.id or last
            if isinstance(each, Ended):
                return
            if each.id:
                break


def test_a_follower_who_is_too_slow_reads_from_the_store(
    engine: Engine, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_hub, "MOST_QUEUED", 2)
    slow = Subscriber(START, lambda: None)
    messages = begin(engine, 5, id=RUN)
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(lambda: numbered(run_events(RUN)))
        run_to_end(ledger, messages)
        told = following.result()
    assert [each for each in told if getattr(each, "status", "") != "open"] == recorded(engine)
    slow.offer([(read_position(each.id), each) for each in recorded(engine)], ())
    assert slow.overtaken
    assert slow.take() == ()


def test_a_hundred_followers_cost_the_statements_of_one(
    engine: Engine, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The hub's own thread would look at times of its own.
    monkeypatch.setattr(Hub, "_start", lambda _: None)
    run_to_end(ledger, begin(engine, 2, id=RUN)[:1])
    spent = []
    for followers in (1, 1, 100):  # the first look may open the store
        hub = Hub()
        for _ in range(followers):
            hub.attach(Subject(RUN), Subscriber(START, lambda: None))
        with counted(engine) as statements:
            hub.look()
        spent.append(len(statements))
    assert spent[1] == spent[2] < 15


@contextmanager
def counted(engine: Engine) -> Iterator[list[str]]:
    """The statements that the service's engine executes."""
    statements: list[str] = []

    def count(_: object, __: object, statement: str, *___: object) -> None:
        statements.append(statement)

    event.listen(Engine, "before_cursor_execute", count)
    yield statements
    event.remove(Engine, "before_cursor_execute", count)


def test_following_ends_where_it_is_closed(engine: Engine) -> None:
    begin(engine, 1, id=RUN)
    following = run_events(RUN)
    assert isinstance(following, Following)

    async def follow() -> list[Any]:
        told: list[Any] = []
        async for batch in following.batches(60):
            told += batch
            if any(isinstance(each, Progressed) for each in batch):
                following.close()
        return told

    *_, last = asyncio.run(follow())
    assert isinstance(last, Progressed)


def test_events_of_a_large_run_are_found_by_indexes(engine: Engine, ledger: Ledger) -> None:
    begin(engine, 1, id=RUN)
    many = """
        INSERT INTO steps (run_id, question_id, sequence, kind, fingerprint, request, state, previous)
        SELECT run_id, question_id, place, kind, fingerprint, request, 'cancelled', previous
        FROM steps, generate_series(1, 20000) AS place
    """
    with engine.begin() as connection:
        connection.execute(text(many))
    asked = {"subjects": [RUN], "numbers": ["0"], "steps": [9_000], "questions": [-1], "most": 500}
    with engine.begin() as connection:
        connection.execute(text("ANALYZE steps"))
        explained = connection.execute(text(f"EXPLAIN {_OF_RUNS.text}"), asked).scalars().all()
    plan = "\n".join(explained)
    assert "steps_run_id_ended_in_id_idx" in plan
    assert "ended_in < pg_snapshot_xmin" in next(line for line in explained if "Index Cond" in line)
    assert "Seq Scan on steps" not in plan


def test_a_restored_store_has_numbers_of_the_server_that_it_is_on(
    engine: Engine, ledger: Ledger, database: str, query: Any
) -> None:
    run_to_end(ledger, begin(engine, 2, id=RUN))
    ahead = "(pg_current_xact_id()::text::bigint + 1000000)::text::xid8"
    with engine.begin() as connection:
        amending(connection)
        connection.execute(text(f"UPDATE steps SET ended_in = {ahead} WHERE sequence > 2"))
        connection.execute(text(f"UPDATE questions SET changed_in = {ahead} WHERE key = 'q1'"))
    assert len(recorded(engine)) == 2 * 3 + 1
    migrate(database)
    told = recorded(engine)
    assert len(told) == 2 * STEPS + 2
    migrate(database)
    assert recorded(engine) == told


def test_tokens_of_a_followed_question_come_as_they_are_published(
    engine: Engine, servers: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTRAIL_BROKER_URL", servers.broker)
    settings.cache_clear()
    begin(engine, 1, id=RUN)
    with ThreadPoolExecutor(1) as pool, Redis.from_url(servers.broker.replace("redis+socket", "unix")) as redis:
        following = question_events(RUN, "1")
        assert isinstance(following, Following)
        told = pool.submit(lambda: next(each for each in following if isinstance(each, Token)))
        assert following.subject.question is not None
        name = channel(following.subject.question)
        wait_until(lambda: redis.publish(name, '{"step": 7, "text": "Mar"}'), "somebody listens")
        assert told.result(60) == Token(step=7, text="Mar")
