"""Nothing is computed twice in an experiment: steps adopt what their twins computed, against a real PostgreSQL."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, delete, event, func, select, text, update

from benchmarks.contenders.cotrail import submission
from cotrail.core.results import Failure
from cotrail.models.commands.control import cancel, pause, resume
from cotrail.models.commands.submission import open_experiment
from cotrail.models.execution import adoption, statements
from cotrail.models.execution.adoption import find_twins
from cotrail.models.execution.leases import Claim
from cotrail.models.execution.ledger import Ledger
from cotrail.models.execution.recovery import expire_leases
from cotrail.models.records.contents import ParagraphCache
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.tables import attempts, questions, runs, steps
from cotrail.systems.registry import find_system
from tests.conftest import Eventually
from tests.integration.conftest import Query
from tests.integration.stepping import LEASE, MILLISECONDS, STEPS, begin, completed, run_to_end, suspect, unsent

pytestmark = pytest.mark.usefixtures("verified")

Begin = Callable[..., list[Dispatch]]
Expected = list[tuple[Any, ...]]

NO_LUCK = Failure(type="StepError", message="no luck")
FOUND_AND_WRITTEN = """
    SELECT key, sequence, steps.kind, fingerprint, request, result, failure, steps.state, prompt_tokens,
        cached_prompt_tokens, generated_tokens, milliseconds, answer, questions.sentences, collected, questions.status,
        (SELECT (position, sentences.text) FROM sentences WHERE step_id = steps.id),
        (SELECT json_agg((rank, digest, paragraph_id, score, query, paragraph_sets.question_id = questions.id)
            ORDER BY rank) FROM paragraph_sets WHERE step_id = steps.id)
    FROM steps JOIN questions ON questions.id = question_id
    WHERE steps.run_id = :run ORDER BY key, sequence
"""


@pytest.fixture
def enter(engine: Engine) -> Begin:
    """Submits a run of the experiment and returns its first messages."""
    open_experiment(engine, "ours", {})

    def enter(run: str, asked: int = 1, **changes: Any) -> list[Dispatch]:
        return begin(engine, asked, **({"id": run, "cell": run, "experiment": "ours", "reuse": True} | changes))

    return enter


@pytest.fixture
def ledger(engine: Engine) -> Ledger:
    return Ledger(engine, "w", LEASE, find_system)


def distinct(asked: int) -> int:
    """How many steps of so many questions differ: all ask two of their three searches alike."""
    return (STEPS - 2) * asked + 2


def let_time_pass(engine: Engine) -> None:
    """Makes every waiting step due."""
    with engine.begin() as connection:
        connection.execute(update(steps).where(steps.c.not_before.is_not(None)).values(not_before=func.now()))


def anew(message: Dispatch) -> Dispatch:
    """The next message of a step that had to wait: its claim has used up an epoch."""
    return replace(message, epoch=message.epoch + 1)


def expire(engine: Engine) -> list[int]:
    with engine.begin() as connection:
        return expire_leases(connection)


def rows_of(engine: Engine, run: str) -> Expected:
    with engine.begin() as connection:
        return [tuple(row) for row in connection.execute(text(FOUND_AND_WRITTEN), {"run": run})]


def computed_twice(engine: Engine) -> Expected:
    """The fingerprints that more than one step of a run that shares them was computed for."""
    with engine.begin() as connection:
        computed = select(steps.c.fingerprint, func.count()).where(steps.c.adopted_from.is_(None))
        counted = computed.where(steps.c.shared_in.is_not(None), steps.c.state == "finished")
        return [tuple(r) for r in connection.execute(counted.group_by(steps.c.fingerprint).having(func.count() > 1))]


def test_a_run_adopts_what_another_computed_and_is_marked_so(ledger: Ledger, enter: Begin, query: Query) -> None:
    assert run_to_end(ledger, enter("first", 3)) == distinct(3)
    assert run_to_end(ledger, enter("second", 3)) == 0
    origin = steps.alias("origin")
    same = (origin.c.fingerprint == steps.c.fingerprint).label("same")
    adopted = select(same, origin.c.run_id, origin.c.adopted_from).join_from(
        steps, origin, steps.c.adopted_from == origin.c.id
    )
    marked = query(adopted.where(steps.c.run_id == "second"))
    assert marked == 3 * STEPS * [{"same": True, "run_id": "first", "adopted_from": None}]


def test_questions_of_a_run_adopt_from_each_other(ledger: Ledger, enter: Begin, query: Query) -> None:
    assert run_to_end(ledger, enter("first", 5)) == distinct(5)
    adopting = query(select(steps.c.kind).where(steps.c.adopted_from.is_not(None)))
    assert adopting == 8 * [{"kind": "retrieve"}]


@pytest.mark.parametrize(
    ("alone", "computed"),
    [({}, 2 * STEPS), ({"experiment": "ours"}, 2 * STEPS), ({"experiment": "theirs", "reuse": True}, distinct(2))],
)
def test_an_adopting_run_leaves_the_rows_of_one_that_computes(
    engine: Engine, ledger: Ledger, enter: Begin, alone: dict[str, Any], computed: int
) -> None:
    open_experiment(engine, "theirs", {})
    assert run_to_end(ledger, enter("first", 2)) == distinct(2)
    assert run_to_end(ledger, enter("adopting", 2)) == 0
    assert run_to_end(ledger, begin(engine, 2, id="alone", cell="alone", **alone)) == computed
    rows = rows_of(engine, "adopting")
    assert rows == rows_of(engine, "alone")
    assert len(rows) == 2 * STEPS
    assert {row[11] for row in rows} == {MILLISECONDS}


def test_a_run_that_does_not_reuse_computes_all_and_none_adopts_from_it(ledger: Ledger, enter: Begin) -> None:
    assert run_to_end(ledger, enter("first")) == STEPS
    assert run_to_end(ledger, enter("aloof", reuse=False)) == STEPS
    assert run_to_end(ledger, enter("third")) == 0


def test_nothing_is_adopted_from_a_run_that_does_not_reuse(ledger: Ledger, enter: Begin) -> None:
    assert run_to_end(ledger, enter("aloof", reuse=False)) == STEPS
    assert run_to_end(ledger, enter("second")) == STEPS


def test_what_differs_is_computed(ledger: Ledger, enter: Begin) -> None:
    assert run_to_end(ledger, enter("first")) == STEPS
    other_model = replace(submission().binding, model="another")
    # Only the searches are the same.
    assert run_to_end(ledger, enter("second", binding=other_model)) == STEPS - 3


@pytest.mark.amends
def test_a_third_run_adopts_from_the_step_that_computed(ledger: Ledger, enter: Begin, query: Query) -> None:
    adopting, computing = enter("adopting"), enter("computing")
    assert [run_to_end(ledger, messages) for messages in (computing, adopting)] == [STEPS, 0]
    # Rows that are written again come last in the index, so that those that adopted are found first.
    query(update(steps).where(steps.c.run_id == "computing").values(worker="x").returning(steps.c.id))
    assert run_to_end(ledger, enter("third")) == 0
    origins = query(select(steps.c.adopted_from).where(steps.c.run_id == "third").order_by(steps.c.sequence))
    computed = query(select(steps.c.id).where(steps.c.run_id == "computing").order_by(steps.c.sequence))
    assert [row["adopted_from"] for row in origins] == [row["id"] for row in computed]


def test_when_the_run_that_computed_is_deleted_those_that_adopted_still_name_its_steps(
    engine: Engine, ledger: Ledger, enter: Begin, query: Query
) -> None:
    for run in ("first", "second"):
        run_to_end(ledger, enter(run))
    computed = {row["id"] for row in query(select(steps.c.id).where(steps.c.run_id == "first"))}
    query(delete(runs).where(runs.c.id == "first").returning(runs.c.id))
    assert run_to_end(ledger, enter("third")) == 0
    for run in ("second", "third"):
        origins = {row["adopted_from"] for row in query(select(steps.c.adopted_from).where(steps.c.run_id == run))}
        assert origins == computed


def test_a_step_waits_while_its_twin_is_at_work_and_then_adopts(
    engine: Engine, ledger: Ledger, enter: Begin, query: Query
) -> None:
    [first], [second] = enter("first"), enter("second")
    [claim] = ledger.claim([first])
    assert Ledger(engine, "other", LEASE, find_system).claim([second]) == [None]
    assert query(select(attempts.c.step_id)) == [{"step_id": first.step_id}]
    assert unsent(engine) == []
    [[*following, woken]] = ledger.commit([completed(claim)])
    assert (len(following), woken) == (1, anew(second))
    [adopting] = ledger.claim([woken])
    assert adopting is not None
    assert adopting.adopted is not None
    assert adopting.adopted.step_id == first.step_id


def test_a_waiting_step_is_found_without_word_of_its_twins_end(engine: Engine, ledger: Ledger, enter: Begin) -> None:
    [first], [second] = enter("first"), enter("second")
    [claim] = ledger.claim([first])
    ledger.claim([second])
    with engine.begin() as connection:
        # Whoever ends the twin passes over a step that is locked just then.
        connection.execute(select(steps.c.id).where(steps.c.id == second.step_id).with_for_update())
        assert len(ledger.commit([completed(claim)])[0]) == 1
    let_time_pass(engine)
    assert unsent(engine) == [anew(second)]
    [adopting] = ledger.claim([anew(second)])
    assert adopting is not None
    assert adopting.adopted is not None


def test_of_twins_in_one_batch_one_is_computed(ledger: Ledger, enter: Begin) -> None:
    messages = [message for run in ("first", "second", "third") for message in enter(run)]
    [claim] = [claim for claim in ledger.claim(messages) if claim is not None]
    [following] = ledger.commit([completed(claim)])
    waited = [message for message in messages if anew(message) in following]
    assert [message.step_id for message in messages if message not in waited] == [claim.step_id]
    assert run_to_end(ledger, following) == STEPS - 1


def test_a_failure_is_not_adopted(engine: Engine, ledger: Ledger, enter: Begin, query: Query) -> None:
    [first], [second], [third] = enter("first"), enter("second"), enter("third")
    [claim] = ledger.claim([first])
    assert ledger.claim([second, third]) == [None, None]
    [woken] = ledger.commit([completed(claim, NO_LUCK)])
    assert sorted(m.step_id for m in woken) == [second.step_id, third.step_id]
    [again, waiting] = ledger.claim([anew(second), anew(third)])
    assert again is not None
    assert (again.adopted, waiting) == (None, None)
    assert anew(anew(third)) in ledger.commit([completed(again)])[0]
    assert query(select(steps.c.adopted_from).where(steps.c.state == "finished")) == [{"adopted_from": None}]


def give_back(engine: Engine, ledger: Ledger, claim: Claim) -> None:
    ledger.release([claim])


def fail_for_now(engine: Engine, ledger: Ledger, claim: Claim) -> None:
    ledger.retry(claim, OSError("try again"), delay_seconds=3600)


def lack(engine: Engine, ledger: Ledger, claim: Claim) -> None:
    ledger.block(claim, OSError("no such corpus"))


def die(engine: Engine, ledger: Ledger, claim: Claim) -> None:
    Ledger(engine, "w", 0, find_system).beat([claim])
    assert expire(engine) == [claim.step_id]


def freeze(engine: Engine, ledger: Ledger, claim: Claim) -> None:
    Ledger(engine, "w", 0, find_system).beat([claim])


@pytest.mark.parametrize("end", [give_back, fail_for_now, lack, die, freeze])
def test_a_step_whose_twin_ends_without_a_result_is_computed(
    engine: Engine, ledger: Ledger, enter: Begin, end: Callable[[Engine, Ledger, Claim], None]
) -> None:
    [first], [second] = enter("first"), enter("second")
    [claim] = ledger.claim([first])
    assert claim is not None
    assert ledger.claim([second]) == [None]
    end(engine, ledger, claim)
    let_time_pass(engine)
    assert anew(second) in unsent(engine)
    assert run_to_end(ledger, [anew(second)]) == STEPS


def test_a_twin_whose_lease_ran_out_counts_for_its_own_step_only(
    engine: Engine, ledger: Ledger, enter: Begin, query: Query
) -> None:
    [first], [second] = enter("first"), enter("second")
    [late] = Ledger(engine, "slow", 0, find_system).claim([first])
    [claim] = ledger.claim([second])
    for ended in (claim, late):
        assert len(ledger.commit([completed(ended)])[0]) == 1
    assert query(select(steps.c.adopted_from).where(steps.c.state == "finished")) == 2 * [{"adopted_from": None}]


def test_a_worker_that_dies_between_claim_and_commit_of_an_adoption_costs_a_claim(
    engine: Engine, ledger: Ledger, enter: Begin, query: Query
) -> None:
    run_to_end(ledger, enter("first"))
    [second] = enter("second")
    [lost] = Ledger(engine, "dying", 0, find_system).claim([second])
    assert lost is not None
    assert expire(engine) == [second.step_id]
    assert run_to_end(ledger, unsent(engine)) == 0
    outcomes = query(select(attempts.c.outcome).where(attempts.c.step_id == second.step_id).order_by(attempts.c.epoch))
    assert [row["outcome"] for row in outcomes] == ["expired", "finished"]
    assert ledger.commit([completed(lost)]) == [[]]


def test_a_step_whose_twins_run_is_paused_adopts_what_was_under_way(
    engine: Engine, ledger: Ledger, enter: Begin
) -> None:
    [first], [second] = enter("first"), enter("second")
    [claim] = ledger.claim([first])
    assert ledger.claim([second]) == [None]
    pause(engine, "first")
    [messages] = ledger.commit([completed(claim)])
    assert anew(second) in messages
    assert run_to_end(ledger, [anew(second)]) == STEPS - 1


def test_a_step_whose_twins_run_is_cancelled_is_computed(engine: Engine, ledger: Ledger, enter: Begin) -> None:
    [first], [second] = enter("first"), enter("second")
    [claim] = ledger.claim([first])
    assert ledger.claim([second]) == [None]
    cancel(engine, "first")
    assert ledger.commit([completed(claim)]) == [[]]
    assert run_to_end(ledger, [anew(second)]) == STEPS


@pytest.mark.parametrize("stop", [pause, cancel])
def test_a_step_does_not_wait_for_a_twin_that_nobody_may_begin(
    engine: Engine, ledger: Ledger, enter: Begin, stop: Callable[[Engine, str], None]
) -> None:
    enter("first")
    stop(engine, "first")
    assert run_to_end(ledger, enter("second")) == STEPS


def test_a_run_that_was_paused_goes_on_with_what_others_computed_meanwhile(
    engine: Engine, ledger: Ledger, enter: Begin
) -> None:
    [first], [second] = enter("first"), enter("second")
    [claim] = ledger.claim([first])
    assert ledger.claim([second]) == [None]
    pause(engine, "second")
    [messages] = ledger.commit([completed(claim)])
    assert ledger.claim([anew(second)]) == [None]
    assert run_to_end(ledger, messages) == STEPS - 1
    resume(engine, "second", find_system)
    assert run_to_end(ledger, unsent(engine)) == 0


@pytest.mark.amends
def test_a_result_that_cannot_be_read_is_not_adopted(
    engine: Engine, ledger: Ledger, enter: Begin, query: Query
) -> None:
    [first], [second] = enter("first"), enter("second")
    run_to_end(ledger, [first])
    query(update(steps).where(steps.c.kind == "read").values(result={}).returning(steps.c.id))
    assert run_to_end(ledger, [second]) == 1
    assert {row["status"] for row in query(select(questions.c.status))} == {"finished"}


def test_a_process_frozen_as_it_claims_holds_nobody_up(engine: Engine, ledger: Ledger, enter: Begin) -> None:
    [first, _], [second, other] = enter("first", 2), enter("second", 2)
    with engine.begin() as frozen:
        rows = [{"id": first.step_id, "epoch": 0, "kind": first.kind}]
        parameters = {"rows": rows, "worker": "frozen", "lease_seconds": LEASE}
        claimed = frozen.execute(statements.CLAIM, parameters).mappings().all()
        assert find_twins(frozen, claimed, "frozen", ParagraphCache()).awaited == set()
        waiting, claim = ledger.claim([second, other])
        assert waiting is None
        assert claim is not None
        frozen.rollback()
    let_time_pass(engine)
    assert run_to_end(ledger, [anew(second)]) == STEPS


def test_of_twins_claimed_at_once_one_is_computed(engine: Engine, enter: Begin) -> None:
    asked, workers = 100, 4
    rounds = zip(*(enter(f"run {n}", asked) for n in range(workers)), strict=True)
    ledgers = [Ledger(engine, f"w{n}", LEASE, find_system) for n in range(workers)]
    together = threading.Barrier(workers)

    def claim(ledger: Ledger, message: Dispatch) -> Claim | None:
        together.wait()
        return ledger.claim([message])[0]

    with ThreadPoolExecutor(workers) as threads:
        for messages in rounds:
            claims = [claim for claim in threads.map(claim, ledgers, messages) if claim is not None]
            assert [claim.adopted for claim in claims] == [None]


@pytest.mark.parametrize("seed", range(3))
def test_whatever_befalls_workers_each_result_is_computed_once(
    engine: Engine, enter: Begin, query: Query, eventually: Eventually, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(adoption, "WAIT_SECONDS", 0.02)
    workers = [Reckless(engine, f"w{n}", seed, enter(f"run {n}", 4)) for n in range(4)]
    threads = [threading.Thread(target=worker.work) for worker in workers]
    for thread in threads:
        thread.start()
    still_open = select(func.count().label("open")).where(questions.c.status == "open")
    eventually(lambda: query(still_open) == [{"open": 0}], "every question is finished", 60)
    for worker, thread in zip(workers, threads, strict=True):
        worker.over.set()
        thread.join()
    assert [error for worker in workers for error in worker.errors] == []
    assert computed_twice(engine) == []
    expected = rows_of(engine, "run 0")
    assert len(expected) == 4 * STEPS
    assert all(rows_of(engine, f"run {n}") == expected for n in range(1, 4))
    assert {"finished"} < {row["outcome"] for row in query(select(attempts.c.outcome))}


class Reckless:
    """A worker that often gives steps back or dies as it holds them; what is lost is found as maintenance does."""

    def __init__(self, engine: Engine, name: str, seed: int, messages: list[Dispatch]) -> None:
        self.engine = engine
        self.messages = messages
        self.alive = Ledger(engine, name, LEASE, find_system)
        self.dying = Ledger(engine, f"{name}, dying", 0.02, find_system)
        self.chance = Random(f"{seed} {name}")
        self.over = threading.Event()
        self.errors: list[BaseException] = []

    def work(self) -> None:
        try:
            self.carry_out(self.messages)
            while not self.over.is_set():
                expire(self.engine)
                for kind in ("retrieve", "reason", "read"):
                    self.carry_out(unsent(self.engine, kind))
                self.carry_out(suspect(self.engine))
        except BaseException as error:  # noqa: BLE001 - the test shows it
            self.errors.append(error)

    def carry_out(self, messages: Sequence[Dispatch]) -> None:
        while messages:
            fate = self.chance.random()
            ledger = self.dying if fate < 0.1 else self.alive
            claims = [claim for claim in ledger.claim(messages) if claim is not None]
            messages = []
            if 0.1 <= fate < 0.2:
                ledger.release(claims)
            elif 0.2 <= fate < 0.3:
                for claim in claims:
                    ledger.retry(claim, OSError("try again"), delay_seconds=0.01)
            elif fate >= 0.3:
                messages = [m for following in ledger.commit([completed(claim) for claim in claims]) for m in following]


def test_a_run_without_an_experiment_asks_nothing_of_adoption(engine: Engine, ledger: Ledger, enter: Begin) -> None:
    asked: Counter[bool] = Counter()

    @event.listens_for(engine, "before_cursor_execute")
    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        asked["advisory_xact_lock" in statement or "AS claimed \nWHERE" in statement] += 1

    assert run_to_end(ledger, begin(engine, 2)) == 2 * STEPS
    assert asked[True] == 0
    run_to_end(ledger, enter("shared", 2))
    assert asked[True] > 0
