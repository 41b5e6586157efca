"""Batches: what is sent when, and what becomes of each line, whatever the provider does."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from msgspec import Struct
from sqlalchemy import Engine, select, text

from cotrail.core.actions.generate import Read
from cotrail.core.prompts import Prompt, user
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, System, expect
from cotrail.engines.language_models.served.model import ServedModel
from cotrail.errors import InputError, TransientStepError
from cotrail.models.commands.control import cancel, pause, resume
from cotrail.models.queries.queues import RunBatches, read_batches
from cotrail.models.schema.database import BATCHES_LEADER, BATCHES_PREFIX
from cotrail.models.schema.service_tables import batches
from cotrail.models.schema.tables import attempts, questions, steps
from cotrail.services.runs import submission
from cotrail.services.runs.requests import make_request
from cotrail.services.runs.scores import run_cost
from cotrail.services.runs.speed import batches_line
from cotrail.systems.registry import find_system
from cotrail.systems.spec import Needs, SystemSpec, find_spec
from cotrail.tasks.runtime import Runtime
from cotrail.tasks.step import carry_out, perform
from cotrail.workers.batching import Batching
from cotrail.workers.leading import Session, session
from tests.batch_provider import Body, Provider, expired
from tests.conftest import Eventually
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import unsent

pytestmark = pytest.mark.usefixtures("verified")

CREATES = ("/v1/batches", "/v1/messages/batches", "/v1/batch/jobs")
FORMS = ["openai", "anthropic", "mistral"]
COUNT = 3


class ChoosingSettings(Struct, frozen=True):
    """None."""


def choosing(question: Question, _: Any, __: ChoosingSettings) -> System:
    """Ask for one of two words, which may take several requests."""
    prompt = Prompt(turns=(user(question.text),))
    said = expect((yield Read(prompt=prompt, max_tokens=9, until="end", choices=("yes", "no"))), Generated)
    return Answer(text=said.text)


CHOOSING = SystemSpec(
    name="choosing", version=1, title="Choosing", settings=ChoosingSettings, open=choosing, needs=lambda _: Needs()
)


def find(name: str, version: int | None = None) -> SystemSpec:
    return find_spec((CHOOSING,), name, version) if name == CHOOSING.name else find_system(name, version)


@pytest.fixture(params=["openai"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider(lambda request: f"Answer to {json.dumps(request)[-90:-60]}")
    yield made
    made.close()


@pytest.fixture
def home(cotrail: Cotrail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: Provider, form: str) -> Path:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    for module in ("configuring", "submission"):
        monkeypatch.setattr(f"cotrail.services.runs.{module}.find_system", find)
    api = "anthropic" if form == "anthropic" else "chat"
    table = {"engine": "openai", "url": provider.url, "model": "m", "api": api, "context": 4096, "batch": form}
    plain = {name: value for name, value in table.items() if name != "batch"}
    (tmp_path / "models.toml").write_text(tomli_w.dumps({"models": {"hosted": table, "plain": plain}}))
    asked = [{"id": f"q{number}", "question": f"What is {number}?", "answers": ["x"]} for number in range(COUNT)]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, asked)))
    return tmp_path


class Driver:
    """A run in batches, whose steps are carried out and whose batches are looked after as a test says."""

    def __init__(self, home: Path, engine: Engine, here: Runtime, own: Session, query: Query) -> None:
        self.engine = engine
        self._home = home
        self._own = own
        self._query = query
        self._here = here
        self.batching = self.another()

    def another(self, sender: str = "") -> Batching:
        """The batching of a further process."""
        here = self._here
        return Batching(here.settings, self.engine, sender or here.ledger.worker, here.stopping)

    def submit(self, **fields: Any) -> str:
        named = {"system": "zero-shot", "dataset": "jsonl", "questions": str(self._home / "questions.jsonl")}
        request = make_request({**named, "model": "hosted", "serving": "batch", **fields})
        return submission.submit(self.engine, submission.prepare(request))

    def work(self, eventually: Eventually) -> None:
        """Carries out every step that is ready."""
        while messages := unsent(self.engine, "read"):
            for message in messages:
                perform(message, carry_out)
            eventually(lambda: not self._here._recording, "what was carried out is recorded")

    def tend(self, passed: str = "1 hour") -> None:
        """Looks after the batches, as if so much time had passed since the last time."""
        times = [f"{name} = {name} - interval '{passed}'" for name in ("checked_at", "missing_since", "ended_at")]
        with self.engine.begin() as connection:
            connection.execute(text(f"UPDATE batches SET {', '.join(times)}"))
        self.batching.tend(self._own)

    def hurry(self) -> None:
        """Has what waits to be tried again tried at once."""
        with self.engine.begin() as connection:
            connection.execute(text("UPDATE steps SET not_before = NULL WHERE state = 'ready'"))

    def through(self, eventually: Eventually, rounds: int = 4) -> None:
        for _ in range(rounds):
            self.work(eventually)
            self.tend()
        self.work(eventually)

    def statuses(self) -> list[str]:
        return [row["status"] for row in self._query(select(questions.c.status).order_by(questions.c.key))]

    def outcomes(self) -> list[list[str]]:
        """The outcomes of each step's executions."""
        rows = self._query(
            select(attempts.c.step_id, attempts.c.outcome).order_by(attempts.c.step_id, attempts.c.epoch)
        )
        by_step: dict[int, list[str]] = {}
        for row in rows:
            by_step.setdefault(row["step_id"], []).append(row["outcome"])
        return list(by_step.values())

    def recorded(self) -> list[dict[str, Any]]:
        return self._query(select(batches).order_by(batches.c.created_at, batches.c.key))

    def under_way(self, run: str) -> RunBatches | None:
        with self.engine.connect() as connection:
            return read_batches(connection, run)


@pytest.fixture
def driver(home: Path, engine: Engine, here: Runtime, query: Query) -> Iterator[Driver]:
    with session(engine, 1.0, BATCHES_LEADER, BATCHES_PREFIX) as own:
        assert own.lead()
        yield Driver(home, engine, here, own, query)


DONE = ["finished"] * COUNT
ONCE = [["batched", "finished"]] * COUNT

by_form = pytest.mark.parametrize("form", FORMS, indirect=True)


@by_form
def test_what_waits_is_sent_as_one_batch_and_its_answers_become_results(
    driver: Driver, provider: Provider, eventually: Eventually
) -> None:
    run = driver.submit()
    driver.work(eventually)
    assert driver.under_way(run) == RunBatches(waves=1, waiting=COUNT)
    provider.held = True
    driver.tend()
    driver.tend()
    told = driver.under_way(run)
    assert told is not None
    [under_way] = told.under_way
    assert (under_way.steps, under_way.lines, under_way.problem) == (COUNT, COUNT, None)
    assert "Wave 1 of at most 1: 3 steps in a batch at the provider" in str(batches_line(told, 1))
    provider.held = False
    driver.through(eventually)
    assert driver.statuses() == DONE
    assert driver.outcomes() == ONCE
    assert len(provider.lines) == COUNT
    assert provider.answered_live == []
    [batch] = driver.recorded()
    assert (batch["state"], batch["answered"], batch["unanswered"], batch["unneeded"]) == ("ended", COUNT, 0, 0)


def test_a_batch_is_sent_only_when_no_further_request_can_come(
    driver: Driver, provider: Provider, eventually: Eventually, query: Query
) -> None:
    driver.submit()
    first, *others = unsent(driver.engine, "read")
    perform(first, carry_out)
    driver.tend()
    assert provider.lines == []
    for message in others:
        perform(message, carry_out)
    driver.tend()
    assert len(provider.lines) == COUNT


@by_form
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_batch_whose_sending_broke_off_is_sent_once(
    driver: Driver, provider: Provider, eventually: Eventually, moment: str
) -> None:
    creations = iter([moment])
    provider.fault = lambda method, path: next(creations, None) if method == "POST" and path in CREATES else None
    driver.submit()
    driver.through(eventually)
    assert driver.statuses() == DONE
    assert len(provider.lines) == COUNT
    assert driver.outcomes() == ONCE


def test_answers_in_another_order_twice_and_to_nobody_count_once(
    driver: Driver, provider: Provider, eventually: Eventually
) -> None:
    def rearranged(results: list[Body]) -> list[Body]:
        foreign = [{**results[0], "custom_id": name} for name in ("nobody", "x-1", f"{results[0]['custom_id']}0", "")]
        other = [{**each, "body": {"choices": []}} for each in results]
        return [*reversed(results), *foreign, *other]

    provider.rearrange = rearranged
    driver.submit()
    driver.through(eventually)
    assert driver.statuses() == DONE
    assert driver.outcomes() == ONCE
    [batch] = driver.recorded()
    assert (batch["answered"], batch["unneeded"]) == (COUNT, COUNT + 4)


@by_form
def test_what_expires_or_meets_a_busy_server_goes_into_the_next_batch(
    driver: Driver, provider: Provider, eventually: Eventually
) -> None:
    def cut(results: list[Body]) -> list[Body]:
        provider.rearrange = list
        busy = {"error": {"type": "overloaded_error", "message": "busy"}}
        return [expired(results[0]["custom_id"]), {**results[1], "status": 529, "body": busy}, *results[2:]]

    provider.rearrange = cut
    driver.submit()
    driver.through(eventually)
    assert driver.statuses() == DONE
    assert driver.outcomes() == ONCE
    first, second = driver.recorded()
    assert (first["answered"], first["unanswered"], second["answered"]) == (1, 2, 2)


@by_form
def test_a_line_that_is_refused_fails_its_step_alone(
    driver: Driver, provider: Provider, eventually: Eventually, query: Query
) -> None:
    refusal = 400, {"error": {"type": "invalid_request_error", "message": "It is rude."}}
    provider.answer = lambda request: refusal if "What is 1?" in json.dumps(request) else "x"
    driver.submit()
    driver.through(eventually)
    assert driver.statuses() == ["finished", "failed", "finished"]
    [reason] = [row["reason"] for row in query(select(questions.c.reason)) if row["reason"]]
    assert reason["type"] == "StepError"
    assert "It is rude." in reason["message"]


def test_a_line_without_any_result_is_asked_again_once_the_provider_has_had_time(
    driver: Driver, provider: Provider, eventually: Eventually
) -> None:
    def cut(results: list[Body]) -> list[Body]:
        return results[:-1] if len(results) == COUNT else results

    provider.rearrange = cut
    driver.submit()
    driver.through(eventually)
    assert driver.statuses() == DONE
    assert driver.outcomes() == ONCE


@by_form
def test_a_batch_whose_creation_was_not_answered_is_found_in_a_list_that_lags(
    driver: Driver, provider: Provider, eventually: Eventually
) -> None:
    """The list shows it only after a minute and a half: nothing is sent a second time until then."""
    creations, lists = iter(["after"]), []

    def fault(method: str, path: str) -> str | None:
        if method == "GET" and path.partition("?")[0] in CREATES:
            lists.append(path)
        return next(creations, None) if method == "POST" and path in CREATES else None

    provider.fault = fault
    driver.submit()
    driver.work(eventually)
    driver.tend()
    hidden = dict(provider.batches)
    provider.batches.clear()
    for seconds in range(0, 100, 10):
        driver.tend(f"{seconds and 10} seconds")
    assert (provider.batches, len(lists)) == ({}, 9)
    provider.batches |= hidden
    driver.through(eventually)
    assert driver.statuses() == DONE
    assert len(provider.lines) == COUNT
    assert len(driver.recorded()) == 1


@by_form
def test_a_provider_that_loses_batches_is_paid_twice_at_most_and_what_it_lost_is_counted(
    driver: Driver, provider: Provider, eventually: Eventually, query: Query
) -> None:
    created: list[str] = []

    def losing(method: str, path: str) -> str | None:
        if method == "POST" and path in CREATES:
            created.append(path)
        elif method == "GET":
            provider.batches.clear()
        return None

    provider.fault = losing
    run = driver.submit()
    driver.through(eventually, 12)
    assert driver.statuses() == ["blocked"] * COUNT
    assert len(created) == 2
    reasons = [row["reason"] for row in query(select(questions.c.reason))]
    assert all("may have charged" in each["message"] for each in reasons)
    with driver.engine.connect() as connection:
        cost = run_cost(connection, run)
    assert cost.lost_requests == 2 * COUNT
    assert cost.lost_tokens > 2 * COUNT
    provider.fault = lambda method, path: None
    resume(driver.engine, run, find)
    driver.through(eventually)
    assert driver.statuses() == DONE


def test_an_account_without_room_for_a_single_request_is_waited_for(
    driver: Driver, provider: Provider, eventually: Eventually
) -> None:
    provider.failing = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}
    provider.takes = 0
    run = driver.submit()
    driver.through(eventually, 10)
    driver.tend("1 second")
    assert driver.statuses() == ["open"] * COUNT
    told = driver.under_way(run)
    assert told is not None
    assert "when the account has room again" in str(batches_line(told))
    before = len(provider.batches)
    for _ in range(5):
        driver.tend("1 second")
    assert len(provider.batches) == before
    provider.failing = None
    driver.through(eventually, 10)
    assert driver.statuses() == DONE


@pytest.mark.parametrize("form", ["anthropic"], indirect=True)
def test_the_recovery_of_a_batch_does_not_wait_for_another_models(
    driver: Driver, home: Path, provider: Provider, eventually: Eventually
) -> None:
    table = tomllib.loads((home / "models.toml").read_text())
    table["models"]["second"] = table["models"]["hosted"] | {"model": "n"}
    (home / "models.toml").write_text(tomli_w.dumps(table))
    driver.submit(model="second")
    provider.held = True
    driver.through(eventually, 2)
    creations = iter(["before"])
    provider.fault = lambda method, path: next(creations, None) if (method, path) == ("POST", CREATES[1]) else None
    driver.submit()
    driver.through(eventually, 4)
    assert len(provider.batches) == 2
    provider.held = False
    driver.through(eventually)
    assert driver.statuses() == DONE * 2


def test_a_request_without_an_answer_again_and_again_fails_in_the_end(
    driver: Driver, provider: Provider, eventually: Eventually
) -> None:
    provider.rearrange = lambda results: [expired(each["custom_id"]) for each in results]
    driver.submit()
    for _ in range(40):
        driver.through(eventually, 1)
        driver.hurry()
    assert driver.statuses() == ["failed"] * COUNT
    assert {each["state"] for each in driver.recorded()} == {"ended"}


@pytest.mark.parametrize("status", ["401", "402"])
def test_a_batch_that_is_refused_blocks_its_questions_until_a_person_acts(
    driver: Driver, provider: Provider, eventually: Eventually, query: Query, status: str
) -> None:
    provider.fault = lambda method, path: status if path == "/v1/batches" and method == "POST" else None
    run = driver.submit()
    driver.through(eventually)
    assert driver.statuses() == ["blocked"] * COUNT
    assert {row["reason"]["type"] for row in query(select(questions.c.reason))} <= {"BlockedError", "QuotaError"}
    provider.fault = lambda method, path: None
    resume(driver.engine, run, find)
    driver.through(eventually)
    assert driver.statuses() == DONE


def test_a_batch_that_is_too_large_for_the_account_goes_out_in_smaller_ones(
    driver: Driver, provider: Provider, eventually: Eventually
) -> None:
    provider.failing = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}
    driver.submit()
    driver.through(eventually, 10)
    assert driver.statuses() == DONE
    assert driver.outcomes() == ONCE
    assert [each["lines"] for each in driver.recorded()] == [COUNT, 1, 1, 1]


def test_a_batch_that_the_provider_fails_blocks_its_questions_with_what_it_said(
    driver: Driver, provider: Provider, eventually: Eventually, query: Query
) -> None:
    provider.failing = {"code": "model_not_found", "message": "There is no model m"}
    driver.submit()
    driver.through(eventually)
    assert driver.statuses() == ["blocked"] * COUNT
    assert all("There is no model m" in row["reason"]["message"] for row in query(select(questions.c.reason)))


def test_a_paused_run_sends_nothing_and_takes_what_was_sent(
    driver: Driver, provider: Provider, eventually: Eventually
) -> None:
    run = driver.submit()
    driver.work(eventually)
    pause(driver.engine, run)
    driver.tend()
    assert provider.lines == []
    resume(driver.engine, run, find)
    driver.tend()
    pause(driver.engine, run)
    driver.tend()
    [batch] = driver.recorded()
    assert (batch["state"], batch["answered"]) == ("ended", COUNT)
    assert driver.statuses() == ["open"] * COUNT
    resume(driver.engine, run, find)
    driver.work(eventually)
    assert driver.statuses() == DONE
    assert len(provider.lines) == COUNT


@by_form
def test_a_cancelled_run_s_batch_is_cancelled(driver: Driver, provider: Provider, eventually: Eventually) -> None:
    provider.held = True
    run = driver.submit()
    driver.through(eventually, 2)
    cancel(driver.engine, run)
    driver.tend()
    assert [batch.get("cancelled") for batch in provider.batches.values()] == [True]
    assert driver.statuses() == ["cancelled"] * COUNT
    [batch] = driver.recorded()
    assert batch["state"] == "ended"


def test_whoever_was_away_while_another_process_sent_its_batch_cancels_its_own(
    driver: Driver, provider: Provider, eventually: Eventually
) -> None:
    driver.submit()
    driver.work(eventually)
    other = driver.another("other")
    creations = iter([True])

    def taking_over(method: str, path: str) -> str | None:
        if method == "POST" and path == "/v1/batches" and next(creations, False):
            # The first process is frozen from here on, until the other one has found no batch and sent its own.
            with driver.engine.begin() as connection:
                connection.execute(text("UPDATE batches SET checked_at = now() - interval '1 hour'"))
            other.tend(driver._own)
        return None

    provider.fault = taking_over
    driver.tend()
    provider.fault = lambda method, path: None
    driver.through(eventually)
    assert driver.statuses() == DONE
    assert sorted(bool(batch.get("cancelled")) for batch in provider.batches.values()) == [False, True]


def test_a_model_that_is_asked_again_is_asked_in_another_batch(
    driver: Driver, provider: Provider, eventually: Eventually, query: Query
) -> None:
    provider.answer = lambda request: "Perhaps." if len(request["messages"]) == 1 else "yes"
    driver.submit(system="choosing")
    driver.through(eventually)
    assert driver.statuses() == DONE
    assert driver.outcomes() == [["batched", "batched", "finished"]] * COUNT
    assert {row["prompt_tokens"] for row in query(select(steps.c.prompt_tokens))} == {14}
    assert [batch["answered"] for batch in driver.recorded()] == [COUNT, COUNT]


def test_an_answer_that_can_not_be_read_is_asked_for_again(
    driver: Driver, provider: Provider, eventually: Eventually
) -> None:
    def damaged(results: list[Body]) -> list[Body]:
        provider.rearrange = list
        return [{**results[0], "body": "nothing of a chat"}, *results[1:]]

    provider.rearrange = damaged
    driver.submit()
    driver.through(eventually, 1)
    driver.tend()
    driver.work(eventually)
    driver.hurry()
    driver.through(eventually)
    assert driver.statuses() == DONE
    assert sorted(driver.outcomes()) == [*ONCE[1:], ["batched", "retried", "batched", "finished"]]


def test_a_tokenizer_that_is_away_costs_no_answer(
    driver: Driver, provider: Provider, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.submit()
    driver.work(eventually)
    driver.tend()
    driver.tend()
    ordered, fails = ServedModel._order, iter([True])

    def order(*arguments: Any, **named: Any) -> Any:
        if next(fails, False):
            raise TransientStepError("the tokenizer is away")
        return ordered(*arguments, **named)

    monkeypatch.setattr(ServedModel, "_order", order)
    driver.work(eventually)
    driver.hurry()
    driver.through(eventually)
    assert driver.statuses() == DONE
    assert len(provider.lines) == COUNT


def test_a_model_without_batches_is_refused_as_the_run_is_submitted(driver: Driver) -> None:
    with pytest.raises(InputError, match="can't be asked in batches"):
        driver.submit(model="plain")
