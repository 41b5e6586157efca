"""A process keeps the systems of the questions that it has advanced: what that saves, and that it decides nothing."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, event, select, update

from cotrail.core.questions import Question
from cotrail.core.system import System
from cotrail.models.execution.ledger import Ledger
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.seals import amending
from cotrail.models.schema.tables import questions, steps
from cotrail.systems.ircot import ircot
from cotrail.systems.registry import SYSTEMS
from cotrail.systems.spec import find_spec
from tests.integration.conftest import Query
from tests.integration.stepping import LEASE, STEPS, begin, completed, run_to_end


class Counted:
    """A worker whose systems are counted as they start."""

    def __init__(self, engine: Engine) -> None:
        self.started = 0
        changed = tuple(replace(spec, open=self._open) if spec.name == "ircot" else spec for spec in SYSTEMS)
        self.ledger = Ledger(engine, "w", LEASE, partial(find_spec, changed))

    def step(self, messages: list[Dispatch]) -> list[Dispatch]:
        """Carries out these steps and returns the messages of those that follow."""
        done = [completed(claim) for claim in self.ledger.claim(messages)]
        return [message for following in self.ledger.commit(done) for message in following]

    def _open(self, question: Question, shots: Any, settings: Any) -> System:
        def counted() -> System:
            self.started += 1
            return (yield from ircot(question, shots, settings))

        return counted()


@pytest.fixture
def counted(engine: Engine) -> Counted:
    return Counted(engine)


def turns(one: Counted, other: Counted) -> Iterator[Counted]:
    while True:
        yield from (one, other)


def is_answered(query: Query) -> bool:
    return query(select(questions.c.status, questions.c.answer)) == [{"status": "finished", "answer": "Grayle"}]


@pytest.mark.usefixtures("verified")
def test_a_system_starts_once_in_each_process_that_records_for_its_question(engine: Engine, query: Query) -> None:
    workers = Counted(engine), Counted(engine)
    messages = begin(engine)
    for worker in turns(*workers):
        if not messages:
            break
        messages = worker.step(messages)
    assert is_answered(query)
    assert [worker.started for worker in workers] == [1, 1]


def test_what_is_known_of_a_question_is_not_read_again(engine: Engine, counted: Counted) -> None:
    messages, read = begin(engine), list[Any]()

    @event.listens_for(engine, "before_cursor_execute")
    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "rows(id BIGINT, known BIGINT)" in statement:
            read.extend(row["known"] for row in parameters["rows"].obj)

    assert run_to_end(counted.ledger, messages) == STEPS
    assert read == list(range(STEPS))


def test_a_step_that_has_another_digest_by_now_is_read_again(engine: Engine, counted: Counted, query: Query) -> None:
    messages = counted.step(begin(engine))
    with engine.begin() as connection:
        amending(connection)
        connection.execute(update(steps).where(steps.c.sequence == 0).values(digest="0" * 64))
    assert run_to_end(counted.ledger, messages) == STEPS - 1
    assert is_answered(query)
    assert counted.started == 2


def test_what_a_transaction_knew_that_came_to_nothing_counts_for_nothing(
    engine: Engine, counted: Counted, query: Query
) -> None:
    messages = counted.step(begin(engine))
    done = [completed(claim) for claim in counted.ledger.claim(messages)]

    def fail(connection: Any) -> None:
        raise RuntimeError("the server went away")

    event.listen(engine, "commit", fail)
    with pytest.raises(RuntimeError):
        counted.ledger.commit(done)
    event.remove(engine, "commit", fail)
    messages = [message for following in counted.ledger.commit(done) for message in following]
    assert run_to_end(counted.ledger, messages) == STEPS - 2
    assert is_answered(query)
    assert counted.started == 2


def test_only_so_many_questions_are_kept(engine: Engine, query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotrail.models.records.advancing.MOST_CACHED_QUESTIONS", 2)
    counted = Counted(engine)
    assert run_to_end(counted.ledger, begin(engine, 3)) == 3 * STEPS
    assert {row["answer"] for row in query(select(questions.c.answer))} == {"Grayle"}
    assert counted.started > 3
