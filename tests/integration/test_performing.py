"""One step in a worker whose engines panic, hang or come too late, on a real store."""

import threading
from collections.abc import Iterator

import msgspec
import pytest
from msgspec.structs import replace
from pydantic import SecretStr
from sqlalchemy import Engine, func, select, update

from cotrail.configuration.settings import Settings
from cotrail.core.ports.cancellation import Interrupted
from cotrail.core.questions import Hit, Paragraph
from cotrail.core.results import Result, Retrieved
from cotrail.errors import UnavailableError
from cotrail.models.execution.leases import Claim
from cotrail.models.execution.recovery import expire_leases
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.tables import attempts, questions, steps
from cotrail.systems.registry import find_system
from cotrail.tasks.runtime import Runtime
from cotrail.tasks.step import carry_out, perform
from tests.conftest import Eventually
from tests.integration.conftest import Query
from tests.integration.stepping import begin, disconnect, executed

pytestmark = pytest.mark.usefixtures("verified")

FOUND = Retrieved(hits=(Hit(paragraph=Paragraph(id="p", title="T", text="found"), rank=1, score=1.0),))


class Panic(BaseException):
    """As libraries in Rust raise it: no `Exception`."""


@pytest.fixture
def here(database: str, servers: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """The process's runtime; it sends nothing, and its searches may take no time at all."""
    monkeypatch.setattr("cotrail.tasks.runtime.send", len)
    own = {"database_url": SecretStr(database), "heartbeat_seconds": 0.02, "deadlines": {"retrieve": 0.05}}
    runtime = Runtime(servers.model_copy(update=own))
    monkeypatch.setattr("cotrail.tasks.step.current_runtime", lambda: runtime)
    yield runtime
    runtime.stop()
    runtime.close()
    for thread in threading.enumerate():
        if thread.name in ("heartbeat", "overdue"):  # it has a connection, which it gives back
            thread.join(60)
    disconnect(runtime)


def search(_: Runtime, claim: Claim) -> Result:
    result = executed(claim)
    assert isinstance(result, Retrieved)
    return result


@pytest.mark.parametrize("kind", [Panic, SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError, RecursionError])
def test_whatever_an_engine_raises_its_thread_goes_on_and_the_step_is_tried_again(
    engine: Engine, here: Runtime, query: Query, kind: type[BaseException], eventually: Eventually
) -> None:
    def panicking(_: Runtime, claim: Claim) -> Result:
        raise kind("the library is at fault")

    first, second = begin(engine, 2)
    done = threading.Event()

    def thread() -> None:
        perform(first, panicking)
        perform(second, search)
        done.set()

    threading.Thread(target=thread, daemon=True).start()
    assert done.wait(30)
    failed = {"outcome": "retried", "type": kind.__name__, "message": "the library is at fault"}
    columns = attempts.c.outcome, attempts.c.error["type"].astext, attempts.c.error["message"].astext
    told = select(*(column.label(name) for column, name in zip(columns, failed, strict=True)))
    assert query(told.where(attempts.c.step_id == first.step_id)) == [failed]
    is_second = steps.c.id == second.step_id
    eventually(
        lambda: query(select(steps.c.state).where(is_second)) == [{"state": "finished"}], "the other is recorded"
    )


@pytest.mark.parametrize("kind", [Panic, SystemExit])
def test_a_claim_that_panics_costs_no_thread(
    engine: Engine, here: Runtime, query: Query, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    def panicking(*_: object) -> list[Claim | None]:
        raise kind("the driver is at fault")

    (message,) = begin(engine)
    met: list[BaseException] = []

    def thread() -> None:
        try:
            perform(message, search)
        except Exception as error:  # noqa: BLE001 - looked at below
            met.append(error)

    with monkeypatch.context() as patch:
        patch.setattr(here.ledger, "claim", panicking)
        started = threading.Thread(target=thread, daemon=True)
        started.start()
        started.join(30)
    assert "the driver is at fault" in str(met)
    perform(message, search)
    assert query(select(attempts.c.step_id)) == [{"step_id": message.step_id}]


def test_a_worker_without_the_pipeline_that_splits_sentences_blocks_the_question(
    engine: Engine, here: Runtime, query: Query, eventually: Eventually
) -> None:
    spec = find_system("ircot")
    splitting = msgspec.to_builtins(spec.settings(splitter="en_core_web_none@3.8.0"))
    (message,) = begin(engine, settings=splitting)
    perform(message, search)
    following = select(steps.c.id, steps.c.epoch).where(steps.c.kind == "reason")
    eventually(lambda: query(following), "the search is recorded")
    (step,) = query(following)
    perform(Dispatch(step["id"], step["epoch"], "reason"), carry_out)
    (reason,) = (row["reason"] for row in query(select(questions.c.reason).where(questions.c.status == "blocked")))
    assert reason["type"] == "NotInstalledError"
    assert "python -m spacy download en_core_web_none" in reason["message"]


def test_a_trial_that_is_cut_off_leaves_the_trial_to_the_next_step(engine: Engine, here: Runtime) -> None:
    def away(_: Runtime, claim: Claim) -> Result:
        raise UnavailableError("it doesn't answer")

    def cut_off(_: Runtime, claim: Claim) -> Result:
        raise Interrupted

    now = [0.0]
    here.breaker._clock = lambda: now[0]
    first, trial, second = begin(engine, 3)
    perform(first, away)
    now[0] += 3600
    perform(trial, cut_off)
    executed_too: list[int] = []

    def noted(runtime: Runtime, claim: Claim) -> Result:
        executed_too.append(claim.step_id)
        return search(runtime, claim)

    perform(second, noted)
    assert executed_too == [second.step_id]


def test_a_panic_in_a_search_has_the_corpus_opened_anew(engine: Engine, here: Runtime) -> None:
    def panicking(_: Runtime, claim: Claim) -> Result:
        raise Panic

    here.engines._retrievers["costless"] = object()  # type: ignore[assignment]
    here.engines._retrievers["other"] = object()  # type: ignore[assignment]
    (message,) = begin(engine)
    perform(message, panicking)
    assert list(here.engines._retrievers) == ["other"]


def test_an_execution_that_takes_too_long_is_recorded_and_given_to_others_and_its_result_is_dropped(
    engine: Engine, here: Runtime, query: Query, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotrail.tasks.runtime.STUCK_SECONDS", 0.0)
    wakes = threading.Event()

    def hanging(_: Runtime, claim: Claim) -> Result:
        assert wakes.wait(60)
        return FOUND

    (message,) = begin(engine)
    thread = threading.Thread(target=perform, args=(message, hanging), daemon=True)
    thread.start()
    retried = select(attempts.c.outcome, attempts.c.error["type"].astext.label("type"))
    expected = [{"outcome": "retried", "type": "OverdueError"}]
    eventually(lambda: query(retried) == expected, "the execution is given up")
    assert query(select(steps.c.state, steps.c.lease_until)) == [{"state": "ready", "lease_until": None}]
    eventually(here.problem, "the thread counts as stuck")
    assert here.problem() == f"1 of its threads don't come back from their steps: {message.step_id}"
    wakes.set()
    thread.join(30)
    assert here.problem() is None
    here.close()
    assert query(select(steps.c.state)) == [{"state": "ready"}]
    assert query(retried) == expected
    perform(replace(message, epoch=1), search)
    eventually(lambda: query(select(steps.c.state).where(steps.c.id == message.step_id)) == [{"state": "finished"}])


def test_an_execution_that_takes_too_long_again_and_again_fails_its_step(
    engine: Engine, here: Runtime, query: Query, eventually: Eventually
) -> None:
    wakes, threads = threading.Event(), []

    def hanging(_: Runtime, claim: Claim) -> Result:
        assert wakes.wait(60)
        return FOUND

    (message,) = begin(engine)
    for epoch in range(here.settings.max_attempts):
        threads.append(threading.Thread(target=perform, args=(replace(message, epoch=epoch), hanging), daemon=True))
        threads[-1].start()
        ended = select(attempts.c.outcome).where(attempts.c.outcome.is_not(None))
        eventually(lambda ended=ended, epoch=epoch: len(query(ended)) == epoch + 1, "the execution is given up")
    wakes.set()
    for thread in threads:
        thread.join(60)
    failure = select(steps.c.state, steps.c.failure["type"].astext.label("type"))
    assert query(failure) == [{"state": "failed", "type": "OverdueError"}]
    assert query(select(questions.c.status)) == [{"status": "failed"}]


def test_the_leases_of_steps_that_wait_for_a_thread_are_renewed(
    engine: Engine, here: Runtime, query: Query, eventually: Eventually
) -> None:
    (message,) = begin(engine)
    assert here.claim_ahead(message).result(30) is not None
    ((first,),) = (row.values() for row in query(select(steps.c.lease_until)))
    eventually(lambda: query(select(steps.c.id).where(steps.c.lease_until > first)), "its lease is renewed")


def test_a_step_whose_lease_ran_out_while_it_waited_is_not_begun(engine: Engine, here: Runtime, query: Query) -> None:
    here.stopping.set()  # no sign of life is given
    (message,) = begin(engine)
    held = here.claim_ahead(message).result(30)
    assert held is not None
    with engine.begin() as connection:
        connection.execute(update(steps).values(lease_until=func.now() - func.make_interval(0, 0, 0, 0, 0, 0, 1)))
        assert expire_leases(connection) == [message.step_id]
    held.renewed -= here.settings.lease_seconds
    with here.claimed(message) as begun:
        assert begun is None
    assert query(select(steps.c.state)) == [{"state": "ready"}]


def test_a_step_whose_lease_was_not_known_to_be_good_is_begun_where_it_is(engine: Engine, here: Runtime) -> None:
    here.stopping.set()
    (message,) = begin(engine)
    held = here.claim_ahead(message).result(30)
    assert held is not None
    held.renewed -= here.settings.lease_seconds
    with here.claimed(message) as begun:
        assert begun is held
