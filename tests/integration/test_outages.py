"""What is away holds steps back and costs them nothing; what kills workers is found out and set aside."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import SecretStr
from sqlalchemy import Engine, func, select, text, update

from benchmarks.contenders.cotrail import submission
from cotrail.configuration.settings import Settings
from cotrail.core.ports.rate_limiter import Limits
from cotrail.core.results import Failure
from cotrail.engines.language_models.catalogue import find_model, identity
from cotrail.errors import TransientStepError, UnavailableError
from cotrail.models.execution.leases import Claim
from cotrail.models.execution.ledger import Ledger
from cotrail.models.execution.recovery import SUSPECT_EXPIRIES, exhausted, expire_leases, take_suspects
from cotrail.models.queries.progress import read_outages, read_progress
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.tables import attempts, questions, steps
from cotrail.services.runs.scores import run_cost
from cotrail.services.runs.speed import RunSpeed, outage_line
from cotrail.systems.registry import find_system
from cotrail.tasks import step
from cotrail.tasks.runtime import Runtime
from tests.integration.conftest import Query
from tests.integration.served import Served, answer, piece, streamed
from tests.integration.stepping import LEASE, STEPS, begin, completed, run_to_end, suspect, unsent
from tests.unit.test_retry_policy import Clock

RUN = "costless"
SENTENCE = [piece("Brenn is it."), "[DONE]"]
MODELS = '[models.served]\nengine = "openai"\nurl = "{url}"\nmodel = "m"\ncontext = 8192\n'

Perform = Callable[[Dispatch], None]


def claim_one(engine: Engine, ledger: Ledger, asked: int = 1) -> Claim:
    claim = ledger.claim(begin(engine, asked))[0]
    assert claim is not None
    return claim


def make_due(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(update(steps).where(steps.c.state == "ready").values(not_before=text("now()")))


# The ledger


def test_a_step_that_found_its_server_away_is_back_later_and_no_try_is_counted(engine: Engine, query: Query) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    claim = claim_one(engine, ledger)
    ledger.hold(claim, UnavailableError("gone"), 3600)
    assert ledger.retries(claim) == 0
    assert unsent(engine) == []
    [attempt] = query(select(attempts.c.outcome, attempts.c.error))
    assert attempt == {"outcome": "unavailable", "error": {"type": "UnavailableError", "message": "gone"}}
    make_due(engine)
    assert len(unsent(engine)) == 1


@pytest.mark.usefixtures("verified")
def test_a_deferred_step_is_as_it_was_before_it_was_claimed_but_for_its_epoch(engine: Engine, query: Query) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    [message] = begin(engine)
    for tries in range(2):
        columns = [column for column in steps.c if column.name not in ("sent_at", "not_before", "epoch")]
        before = query(select(*columns)), query(select(attempts))
        for _ in range(3):
            [claim] = ledger.claim([message])
            assert claim is not None
            ledger.defer(claim, 0)
            assert (query(select(*columns)), query(select(attempts))) == before
            assert unsent(engine) == [replace(message, epoch=message.epoch + 1)]
            message = replace(message, epoch=message.epoch + 1)
        [claim] = ledger.claim([message])
        assert claim is not None
        ledger.retry(claim, TransientStepError("no"), 0)
        [message] = unsent(engine)
        assert message.epoch == 4 * (tries + 1)
    assert run_to_end(ledger, [message]) == 7


def test_tries_before_a_step_failed_for_good_no_longer_count(engine: Engine) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    claim = claim_one(engine, ledger)
    ledger.retry(claim, TransientStepError("no"), 0)
    with engine.begin() as connection:
        connection.execute(update(attempts).values(outcome="failed"))
    [claim_again] = ledger.claim(unsent(engine))
    assert claim_again is not None
    ledger.retry(claim_again, TransientStepError("no"), 0)
    assert ledger.retries(claim_again) == 1


# Workers


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def here(database: str, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """A worker's runtime whose clock stands still."""
    runtime = Runtime(Settings(home=tmp_path, database_url=SecretStr(database)))
    runtime.breaker._clock = clock
    monkeypatch.setattr(step, "current_runtime", lambda: runtime)
    yield runtime
    runtime.stop()
    runtime.close()


def asked_of(engine: Engine, home: Path, url: str, count: int, run: str = RUN, table: str = MODELS) -> list[Dispatch]:
    """Messages of so many `reason` steps of a run whose model is at that address."""
    (home / "models.toml").write_text(table.format(url=url))
    model = identity(find_model(home / "models.toml", "served"))
    binding = replace(submission().binding, model=model)
    ledger = Ledger(engine, "by hand", LEASE, find_system)
    claims = ledger.claim(begin(engine, count, id=run, model_name="served", binding=binding))
    return [message for messages in ledger.commit([completed(claim) for claim in claims]) for message in messages]


def outcomes(query: Query) -> dict[str, int]:
    of_reason = select(attempts.c.outcome, func.count().label("number")).join(steps).where(steps.c.kind == "reason")
    return {row["outcome"]: row["number"] for row in query(of_reason.group_by(attempts.c.outcome))}


def test_an_outage_costs_one_execution_a_trial_and_the_rest_is_deferred(
    engine: Engine, query: Query, here: Runtime, clock: Clock, tmp_path: Path
) -> None:
    gone = Served()
    gone.close()
    for message in asked_of(engine, tmp_path, gone.url, 10):
        step.perform(message, step.carry_out)
    assert outcomes(query) == {"unavailable": 1}
    assert unsent(engine, "reason") == []
    clock.now += 10
    make_due(engine)
    for message in unsent(engine, "reason"):
        step.perform(message, step.carry_out)
    assert outcomes(query) == {"unavailable": 2}
    assert query(select(steps.c.state).where(steps.c.kind == "reason").distinct()) == [{"state": "ready"}]


def test_the_first_success_ends_an_outage(
    engine: Engine, query: Query, here: Runtime, served: Served, tmp_path: Path
) -> None:
    served.replies = [streamed(SENTENCE)]
    served.tokenizer = answer(503, headers={"Retry-After": "3600"})
    messages = asked_of(engine, tmp_path, served.url, 3)
    step.perform(messages[0], step.carry_out)
    left = func.extract("epoch", steps.c.not_before - func.now()).label("left")
    [held] = query(select(left).where(steps.c.id == messages[0].step_id))
    assert 200 < held["left"] <= 300
    here.breaker.succeeded("the model served")
    served.tokenizer = answer(404)
    for message in messages[1:]:
        step.perform(message, step.carry_out)
    here.close()
    assert outcomes(query) == {"unavailable": 1, "finished": 2}


def test_runs_whose_model_is_up_go_on(
    engine: Engine, query: Query, here: Runtime, served: Served, tmp_path: Path
) -> None:
    here.breaker.failed("the model elsewhere")
    served.replies = [streamed(SENTENCE)]
    for message in asked_of(engine, tmp_path, served.url, 2):
        step.perform(message, step.carry_out)
    here.close()
    assert outcomes(query) == {"finished": 2}


def test_what_is_wrong_with_a_step_or_a_run_is_no_outage(
    engine: Engine, query: Query, here: Runtime, served: Served, tmp_path: Path
) -> None:
    served.replies = [answer(500), answer(400), answer(401)]
    for message in asked_of(engine, tmp_path, served.url, 3):
        step.perform(message, step.carry_out)
    here.close()
    assert outcomes(query) == {"retried": 1, "failed": 1, "blocked": 1}
    assert {row["status"] for row in query(select(questions.c.status))} == {"open", "failed", "blocked"}


# What is shown of it


def test_it_is_shown_what_is_away_how_much_waits_and_when_it_is_tried_again(
    engine: Engine, here: Runtime, tmp_path: Path
) -> None:
    gone = Served()
    gone.close()
    for message in asked_of(engine, tmp_path, gone.url, 12):
        step.perform(message, step.carry_out)
    with engine.connect() as connection:
        progress = read_progress(connection, RUN)
        assert run_cost(connection, RUN).lost == {"unavailable": 1}
    [outage] = progress.outages
    assert (outage.what, outage.steps) == ("the model server", 12)
    assert 0 <= outage.next_seconds <= 2
    line = outage_line(outage)
    assert RunSpeed().waits_for(progress) == line
    assert line.startswith("The model server doesn't answer (http://127.0.0.1:")
    assert " can't be reached: ConnectError" in line
    assert "): 12 steps wait for it since " in line
    assert "the next trial is in " in line


def test_an_outage_is_over_once_a_step_was_answered(
    engine: Engine, here: Runtime, served: Served, tmp_path: Path
) -> None:
    served.tokenizer, served.replies = answer(502), [streamed(SENTENCE)]
    first, second = asked_of(engine, tmp_path, served.url, 2)
    step.perform(first, step.carry_out)
    with engine.connect() as connection:
        assert len(read_outages(connection, RUN)) == 1
    served.tokenizer = answer(404)
    here.breaker.succeeded("the model served")
    step.perform(second, step.carry_out)
    here.close()
    with engine.connect() as connection:
        assert read_outages(connection, RUN) == ()


def test_it_is_shown_which_limits_steps_wait_for_while_others_are_answered(
    engine: Engine, here: Runtime, served: Served, tmp_path: Path
) -> None:
    told = {"x-ratelimit-limit-requests": "6"}, {"x-ratelimit-limit-requests": "6000"}
    served.replies = [answer(200, piece("Brenn is it.", "stop"), headers) for headers in told]
    hosted = MODELS + 'account = "acme"\nomits = ["stream"]\n'
    first, second, third = asked_of(engine, tmp_path, served.url, 3, table=hosted)
    step.perform(first, step.carry_out)
    step.perform(second, step.carry_out)
    here.engines._limiter.tell("acme/m", Limits(requests=6000), 0.0)
    step.perform(third, step.carry_out)
    here.close()
    assert len(served.generations) == 2
    with engine.connect() as connection:
        progress = read_progress(connection, RUN)
    [outage] = progress.outages
    assert (outage.busy, outage.answers, outage.steps) == (True, True, 1)
    line = outage_line(outage)
    assert line.startswith("The model server takes no more for now (waiting for the limits of m (acme): 6 requests a ")
    assert "): 1 step waits, the next is in " in line
    assert RunSpeed().waits_for(progress) == line
    # Once it is due, it waits for a worker and not for limits.
    make_due(engine)
    assert len(unsent(engine, "reason")) == 1


def test_where_steps_wait_for_nobody_redis_is_asked_whether_it_answers(engine: Engine) -> None:
    begin(engine)
    speed = RunSpeed(lambda: "connection refused")
    with engine.connect() as connection:
        progress = read_progress(connection, RUN)
    speed.note(progress, 0.0)
    speed.note(progress, 10.5)
    assert str(speed.waits_for(progress)).startswith("Redis doesn't answer (connection refused): 1 retrieve step waits")


# Steps that kill their workers


def die(engine: Engine, messages: list[Dispatch]) -> list[int]:
    """A worker takes these steps and gives no further sign of life; returns those that are back."""
    Ledger(engine, "dying", 0, find_system).claim(messages)
    with engine.begin() as connection:
        return expire_leases(connection)


def poisoned(engine: Engine, ids: list[int], max_attempts: int = 5) -> list[int]:
    with engine.begin() as connection:
        return exhausted(connection, ids, max_attempts)


def test_suspects_are_sent_one_at_a_time(engine: Engine) -> None:
    messages = begin(engine, 3)
    for number in range(SUSPECT_EXPIRIES):
        assert len(die(engine, messages)) == 3
        messages = unsent(engine)
        assert len(messages) == (3 if number + 1 < SUSPECT_EXPIRIES else 0)
    [first] = suspect(engine)
    assert suspect(engine) == []
    ledger = Ledger(engine, "w", LEASE, find_system)
    [claim] = ledger.claim([first])
    assert suspect(engine) == []
    ledger.commit([completed(claim)])
    [second] = suspect(engine)
    assert second.step_id != first.step_id


class Hunt:
    """Steps of which some kill whatever worker takes them, each worker taking all that is sent at once."""

    def __init__(self, engine: Engine, messages: list[Dispatch], culprits: set[int]) -> None:
        self.engine = engine
        self.culprits = culprits
        self.alive, self.dying = (Ledger(engine, name, lease, find_system) for name, lease in (("w", LEASE), ("d", 0)))
        self.set_aside: list[int] = []
        self.deaths = self.rounds = 0
        while messages:
            self.rounds += 1
            found = self._taken(messages)
            messages = unsent(engine) or self._suspects(at_once=found)

    def _taken(self, messages: list[Dispatch]) -> bool:
        """Whether a worker that takes these steps dies and gives away a culprit by that."""
        if not self.culprits & {message.step_id for message in messages}:
            run_to_end(self.alive, messages)
            return False
        self.deaths += 1
        found = poisoned(self.engine, die(self.engine, messages), 3)
        self.set_aside += found
        self.dying.give_up(found, Failure(type="PoisonedStep", message="again and again"))
        return bool(found)

    def _suspects(self, *, at_once: bool) -> list[Dispatch]:
        with self.engine.begin() as connection:
            return take_suspects(connection, at_once=at_once)


@pytest.mark.parametrize("place", [0, 100, 255])
def test_a_culprit_among_256_is_found_in_eight_deaths_and_the_others_lose_a_few_rounds(
    engine: Engine, query: Query, place: int
) -> None:
    messages = begin(engine, 256)
    culprit = messages[place].step_id
    hunt = Hunt(engine, messages, {culprit})
    assert hunt.set_aside == [culprit]
    assert hunt.deaths <= SUSPECT_EXPIRIES + 8
    assert hunt.rounds <= hunt.deaths + 10
    ended = query(select(questions.c.status, func.count().label("number")).group_by(questions.c.status))
    assert {row["status"]: row["number"] for row in ended} == {"finished": 255, "failed": 1}


@pytest.mark.parametrize("seed", range(3))
def test_of_several_culprits_each_is_found_and_nobody_else_is_accused(engine: Engine, seed: int) -> None:
    messages = begin(engine, 24)
    culprits = set(Random(seed).sample([message.step_id for message in messages], 3))
    hunt = Hunt(engine, messages, culprits)
    assert sorted(hunt.set_aside) == sorted(culprits)
    assert hunt.deaths <= SUSPECT_EXPIRIES + 3 * 6


def test_two_deaths_without_a_culprit_do_not_make_everything_serial(engine: Engine) -> None:
    messages = begin(engine, 64)
    for _ in range(SUSPECT_EXPIRIES):
        die(engine, messages)
        messages = unsent(engine)
    hunt = Hunt(engine, suspect(engine), set())
    assert (hunt.set_aside, hunt.deaths) == ([], 0)
    assert hunt.rounds <= 7 + STEPS


def test_one_whose_companion_has_not_ended_yet_is_not_accused(engine: Engine) -> None:
    """Leases of one dead worker run out in different sweeps."""
    messages = begin(engine, 4)
    for _ in range(SUSPECT_EXPIRIES):
        die(engine, messages)
        messages = unsent(engine)
    first, second = suspect(engine)
    Ledger(engine, "still", LEASE, find_system).claim([second])
    assert poisoned(engine, die(engine, [first]), 3) == []
    with engine.begin() as connection:
        connection.execute(update(steps).where(steps.c.id == second.step_id).values(lease_until=text("now()")))
    with engine.begin() as connection:
        expired = expire_leases(connection)
    assert expired == [second.step_id]
    assert poisoned(engine, expired, 3) == []


def test_what_ended_before_a_step_failed_for_good_no_longer_makes_it_a_suspect(engine: Engine) -> None:
    messages = begin(engine)
    for _ in range(3):
        [step_id] = die(engine, messages)
        found = poisoned(engine, [step_id], 3)
        messages = unsent(engine) + suspect(engine)
    assert found == [step_id]
    with engine.begin() as connection:
        connection.execute(update(attempts).where(attempts.c.epoch == 3).values(outcome="failed"))
        connection.execute(update(steps).values(sent_at=None))
    [message] = unsent(engine)
    die(engine, [message])
    assert poisoned(engine, [step_id], 3) == []
    assert len(unsent(engine)) == 1


def test_a_suspect_has_another_chance_however_few_are_allowed(engine: Engine) -> None:
    messages = begin(engine)
    counted: list[Any] = []
    for _ in range(3):
        ids = die(engine, messages)
        counted.append(poisoned(engine, ids, 1))
        messages = unsent(engine) + suspect(engine)
    assert counted == [[], [], ids]
