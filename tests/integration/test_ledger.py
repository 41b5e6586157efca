"""The promises of the store, each held against a real PostgreSQL: docs/architecture.md numbers them."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, delete, select, text, update

from benchmarks.contenders.cotrail import submission
from benchmarks.costless import SENTENCES
from cotrail.core.actions.generate import Reason
from cotrail.core.actions.registry import KINDS
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import AnswerForm
from cotrail.core.questions import Question
from cotrail.core.results import Failure, Generated
from cotrail.core.system import Answer, System
from cotrail.errors import CorpusChangedError, InputError
from cotrail.models.commands.control import cancel, pause, resume
from cotrail.models.commands.submission import submit
from cotrail.models.execution.leases import Claim
from cotrail.models.execution.ledger import Ledger
from cotrail.models.execution.recovery import (
    exhausted,
    expire_leases,
    ready_kinds,
    take_lost,
    take_suspects,
    take_unsent,
)
from cotrail.models.records.advancing import advance_questions
from cotrail.models.records.questions import lock_questions
from cotrail.models.records.runs import Runs
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.database import IDLE_SECONDS, connect
from cotrail.models.schema.tables import attempts, paragraph_sets, paragraphs, questions, runs, sentences, steps
from cotrail.systems import own
from cotrail.systems.parts.prompting import few_shot_prompt
from cotrail.systems.registry import SYSTEMS, find_system
from cotrail.systems.spec import SystemSpec, find_spec
from tests.integration.conftest import Query
from tests.integration.stepping import LEASE, STEPS, ask, begin, completed, executed, run_to_end, unsent

pytestmark = pytest.mark.usefixtures("verified")


def test_a_question_runs_from_step_to_step_to_its_answer(engine: Engine, query: Query) -> None:
    assert run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine, 3)) == 3 * STEPS
    assert {row["answer"] for row in query(select(questions))} == {"Grayle"}
    assert {row["status"] for row in query(select(questions))} == {"finished"}
    assert [row["text"] for row in query(select(sentences).where(sentences.c.question_id == 1))][-1].startswith("So")
    assert len(query(select(paragraph_sets))) == 3 * 3 * 4
    assert {row["outcome"] for row in query(select(attempts))} == {"finished"}


def test_workers_find_their_rows_by_an_index_and_never_through_the_whole_run(database: str, engine: Engine) -> None:
    messages = begin(engine, 20)
    workers = connect(database, by_index=True)
    before = _scans(engine)
    assert run_to_end(Ledger(workers, "w", LEASE, find_system), messages) == 20 * STEPS
    with workers.begin() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
    workers.dispose()
    assert _scans(engine) == before


def _scans(engine: Engine) -> dict[str, int]:
    """How often each table was read whole, and the steps of a run one after another."""
    tables = "SELECT relname, seq_scan FROM pg_stat_user_tables"
    of_run = "SELECT indexrelname, idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'steps_run_id_idx'"
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
    with engine.begin() as connection:
        found = connection.execute(text(f"{tables} UNION ALL {of_run}"))
        return {row[0]: row[1] for row in found}


def test_paragraphs_of_a_commit_that_came_to_nothing_are_stored_by_the_next(
    engine: Engine, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    [message] = begin(engine)
    ledger = Ledger(engine, "w", LEASE, find_system)
    [claim] = ledger.claim([message])
    with monkeypatch.context() as failing:
        failing.setattr(ledger, "_save_sentences", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ledger.commit([completed(claim)])
    assert query(select(paragraphs)) == []
    [following] = ledger.commit([completed(claim)])
    assert len(following) == 1
    assert len(query(select(paragraphs))) == 4


def test_a_sign_of_life_does_not_wait_for_steps_that_are_being_recorded(engine: Engine) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    held = [claim for claim in ledger.claim(begin(engine, 2)) if claim]
    with ThreadPoolExecutor(1) as thread, engine.begin() as connection:
        recorded = update(steps).where(steps.c.id == held[0].step_id).values(worker="w")
        connection.execute(recorded)
        beaten = thread.submit(ledger.beat, held).result(timeout=10)
    assert (beaten.renewed, beaten.lost) == (held[1:], [])


def test_of_many_that_claim_one_step_at_once_one_gets_it(engine: Engine) -> None:
    [message] = begin(engine)
    ledgers = [Ledger(engine, f"w{n}", LEASE, find_system) for n in range(4)]
    together = threading.Barrier(len(ledgers))

    def claim(ledger: Ledger) -> Claim | None:
        together.wait()
        return ledger.claim([message])[0]

    with ThreadPoolExecutor(len(ledgers)) as threads:
        claims = list(threads.map(claim, ledgers))
    assert len([claim for claim in claims if claim]) == 1


def test_a_message_from_before_the_last_claim_claims_nothing(engine: Engine) -> None:
    [message] = begin(engine)
    ledger = Ledger(engine, "w", LEASE, find_system)
    [claim] = ledger.claim([message])
    assert claim is not None
    ledger.release([claim])
    assert ledger.claim([message]) == [None]
    assert ledger.claim(unsent(engine)) != [None]


def test_a_message_that_says_another_kind_claims_nothing(engine: Engine) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    (message,) = begin(engine)
    assert ledger.claim([replace(message, kind="reason")]) == [None]
    assert None not in ledger.claim([message])


def test_a_result_that_comes_after_another_claimed_the_step_changes_nothing(engine: Engine, query: Query) -> None:
    [message] = begin(engine)
    slow, quick = Ledger(engine, "slow", 0, find_system), Ledger(engine, "quick", LEASE, find_system)
    [stale] = slow.claim([message])
    with engine.begin() as connection:
        assert expire_leases(connection) == [message.step_id]
    [fresh] = quick.claim(unsent(engine))
    [following] = quick.commit([completed(fresh)])
    assert len(following) == 1
    assert slow.commit([completed(stale, Failure(type="Late", message="too late"))]) == [[]]
    [step] = query(select(steps).where(steps.c.id == message.step_id))
    assert (step["state"], step["epoch"], step["failure"]) == ("finished", 2, None)
    outcomes = query(select(attempts.c.outcome).where(attempts.c.step_id == message.step_id).order_by(attempts.c.epoch))
    assert [row["outcome"] for row in outcomes] == ["expired", "finished"]


def test_a_result_under_a_lease_that_ran_out_counts_while_nobody_else_claimed(engine: Engine, query: Query) -> None:
    [message] = begin(engine)
    ledger = Ledger(engine, "w", 0, find_system)
    [claim] = ledger.claim([message])
    with engine.begin() as connection:
        expire_leases(connection)
    assert len(ledger.commit([completed(claim)])[0]) == 1
    assert query(select(steps.c.state).where(steps.c.id == message.step_id)) == [{"state": "finished"}]


def test_two_results_of_one_claim_count_once(engine: Engine, query: Query) -> None:
    [message] = begin(engine)
    ledger = Ledger(engine, "w", LEASE, find_system)
    [claim] = ledger.claim([message])
    first = ledger.commit([completed(claim)])
    assert ledger.commit([completed(claim)]) == [[]]
    assert len(first[0]) == 1
    assert len(query(select(steps))) == 2


def test_a_finished_question_is_never_touched_again(engine: Engine, query: Query) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    first = begin(engine)
    run_to_end(ledger, first)
    before = query(select(steps).order_by(steps.c.id))
    assert ledger.claim(first) == [None]
    assert query(select(steps).order_by(steps.c.id)) == before


def test_a_heartbeat_keeps_the_lease_and_its_absence_loses_it(engine: Engine) -> None:
    begun = begin(engine, 2)
    short, long = Ledger(engine, "w", 0, find_system), Ledger(engine, "w", LEASE, find_system)
    kept, lost = (claim for claim in short.claim(begun) if claim)
    long.beat([kept])
    with engine.begin() as connection:
        assert expire_leases(connection) == [lost.step_id]


def test_a_heartbeat_tells_which_steps_are_another_workers_or_over(engine: Engine) -> None:
    ledger, other = Ledger(engine, "w", LEASE, find_system), Ledger(engine, "other", LEASE, find_system)
    begun = begin(engine, 4)
    kept, expired, lost, done = (claim for claim in Ledger(engine, "w", 0, find_system).claim(begun) if claim)
    ledger.beat([kept])
    with engine.begin() as connection:
        assert len(expire_leases(connection)) == 3
    other.claim([begun[2]])
    beaten = ledger.beat([kept, expired, lost, done])
    assert (beaten.renewed, beaten.lost) == ([kept], [])
    other.claim([Dispatch(lost.step_id, lost.epoch, "retrieve")])
    ledger.commit([completed(done)])
    assert ledger.beat([kept, expired, lost, done]).lost == [lost, done]
    cancel(engine, "costless")
    assert ledger.beat([kept, expired, lost, done]).lost == [kept, expired, lost, done]


def test_a_failure_is_told_to_the_system_and_fails_the_question_that_does_not_catch_it(
    engine: Engine, query: Query
) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    [claim] = ledger.claim(begin(engine))
    assert ledger.commit([completed(claim, Failure(type="StepError", message="no luck"))]) == [[]]
    [question] = query(select(questions))
    assert (question["status"], question["reason"]) == ("failed", {"type": "StepError", "message": "no luck"})


@pytest.mark.amends
def test_one_bad_question_of_a_batch_blocks_alone(engine: Engine, query: Query) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    messages = begin(engine, 3)
    claims = ledger.claim(messages)
    with engine.begin() as connection:
        connection.execute(update(steps).where(steps.c.id == messages[1].step_id).values(fingerprint="0" * 64))
    following = ledger.commit([completed(claim) for claim in claims])
    assert [len(messages) for messages in following] == [1, 0, 1]
    assert [row["status"] for row in query(select(questions).order_by(questions.c.id))] == ["open", "blocked", "open"]


def test_a_line_that_reasons_without_being_a_sentence_is_no_part_of_the_chain(engine: Engine, query: Query) -> None:
    def titles_first(question: Question, shots: Any, settings: Any) -> System:
        prompt = few_shot_prompt(demonstrations=shots[AnswerForm.COT], paragraphs=(), question=question.text)
        yield Reason(prompt=prompt, max_tokens=9, until="line")
        written = yield Reason(prompt=prompt, max_tokens=9)
        return Answer(text=str(written))

    changed = tuple(replace(spec, open=titles_first) if spec.name == "ircot" else spec for spec in SYSTEMS)
    begin(engine)
    with engine.begin() as connection:
        connection.execute(delete(steps))
        advance_questions(connection, Runs(partial(find_spec, changed)), lock_questions(connection, [1]), send=False)
    assert run_to_end(Ledger(engine, "w", LEASE, partial(find_spec, changed)), unsent(engine, "reason")) == 2
    assert query(select(sentences.c.text)) == [{"text": SENTENCES[0]}]


def test_where_the_model_writes_nothing_the_chain_ends_without_a_sentence_and_the_empty_answer_is_one(
    engine: Engine, query: Query
) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    messages = begin(engine)
    for nothing in (False, True, True):  # the search, the first sentence, the answer
        [claim] = ledger.claim(messages)
        result = executed(claim) if claim else None
        if nothing and isinstance(result, Generated):
            result = replace(result, text="", raw="\n")
        [messages] = ledger.commit([completed(claim, result)])
    assert messages == []
    assert query(select(questions.c.status, questions.c.answer)) == [{"status": "finished", "answer": ""}]
    assert query(select(sentences.c.text)) == []
    assert [row["state"] for row in query(select(steps.c.state))] == ["finished"] * 3


def test_a_changed_system_blocks_with_both_sides_shown_and_goes_on_when_put_back(engine: Engine, query: Query) -> None:
    def other(question: Question, shots: Any, settings: Any) -> System:
        yield Retrieve(query="something else", count=3)
        return Answer(text="")

    changed = tuple(replace(spec, open=other) if spec.name == "ircot" else spec for spec in SYSTEMS)
    [claim] = (edited := Ledger(engine, "edited", LEASE, partial(find_spec, changed))).claim(begin(engine))
    assert edited.commit([completed(claim)]) == [[]]
    [question] = query(select(questions))
    assert question["status"] == "blocked"
    assert question["reason"]["type"] == "ReplayMismatchError"
    assert "recorded retrieve" in question["reason"]["message"]
    assert "same kind with another input" in question["reason"]["message"]
    resume(engine, "costless", find_system)
    assert run_to_end(Ledger(engine, "w", LEASE, find_system), unsent(engine, "reason")) == STEPS - 1
    assert query(select(questions.c.status, questions.c.reason)) == [{"status": "finished", "reason": None}]


def test_a_system_version_that_a_worker_lacks_waits_with_a_visible_reason(engine: Engine, query: Query) -> None:
    newer: tuple[SystemSpec, ...] = tuple(replace(spec, version=99) for spec in SYSTEMS)
    ledger = Ledger(engine, "newer", LEASE, partial(find_spec, newer))
    [claim] = ledger.claim(begin(engine))
    ledger.commit([completed(claim)])
    [question] = query(select(questions))
    assert (question["status"], question["reason"]["type"]) == ("blocked", "UnknownVersionError")
    assert query(select(steps.c.state).where(steps.c.sequence == 0)) == [{"state": "finished"}]


def test_what_a_step_lacks_blocks_its_question_and_costs_nothing_done(engine: Engine, query: Query) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    [claim] = ledger.claim(begin(engine))
    assert claim is not None
    ledger.block(claim, CorpusChangedError("indexed again"))
    assert (
        query(select(questions.c.status, questions.c.reason))[0]["reason"]["message"]
        == f"on the host {socket.gethostname()}, indexed again"
    )
    assert unsent(engine) == []
    resume(engine, "costless", find_system)
    assert run_to_end(ledger, unsent(engine)) == STEPS


def test_a_paused_run_keeps_what_ends_and_begins_nothing_until_resumed(engine: Engine, query: Query) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    first, second = begin(engine, 2)
    [claim] = ledger.claim([first])
    pause(engine, "costless")
    [[following]] = ledger.commit([completed(claim)])
    assert ledger.claim([second, following]) == [None, None]
    resume(engine, "costless", find_system)
    assert run_to_end(ledger, unsent(engine) + unsent(engine, "reason")) == 2 * STEPS - 1
    assert {row["status"] for row in query(select(questions))} == {"finished"}


def test_a_cancelled_run_is_over_and_what_was_under_way_changes_nothing(engine: Engine, query: Query) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    first, second = begin(engine, 2)
    [claim] = ledger.claim([first])
    cancel(engine, "costless")
    assert ledger.commit([completed(claim)]) == [[]]
    assert ledger.claim([second]) == [None]
    assert {row["status"] for row in query(select(questions.c.status))} == {"cancelled"}
    assert {row["state"] for row in query(select(steps.c.state))} == {"cancelled"}
    assert query(select(attempts.c.outcome)) == [{"outcome": "cancelled"}]
    with pytest.raises(InputError, match="final"):
        resume(engine, "costless", find_system)


def test_a_run_that_is_over_is_not_paused(engine: Engine) -> None:
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine))
    with pytest.raises(InputError, match="all questions of run costless have ended"):
        pause(engine, "costless")


def test_a_step_is_retried_after_its_delay_and_not_before(engine: Engine) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    [claim] = ledger.claim(begin(engine))
    assert claim is not None
    ledger.retry(claim, OSError("try again"), delay_seconds=3600)
    assert ledger.retries(claim) == 1
    assert unsent(engine) == []
    with engine.begin() as connection:
        connection.execute(update(steps).values(not_before=text("now()")))
    assert len(unsent(engine)) == 1


def test_a_step_whose_workers_die_again_and_again_fails_in_the_end(engine: Engine, query: Query) -> None:
    dying = Ledger(engine, "dying", 0, find_system)
    messages = begin(engine)
    for _ in range(3):
        dying.claim(messages)
        with engine.begin() as connection:
            expired = expire_leases(connection)
            poisoned = exhausted(connection, expired, max_attempts=3)
            messages = take_unsent(connection, "retrieve", 1) + take_suspects(connection)
    assert poisoned == expired
    dying.give_up(poisoned, Failure(type="PoisonedStep", message="three times"))
    assert query(select(questions.c.status, questions.c.reason))[0]["reason"]["type"] == "PoisonedStep"
    outcomes = query(select(attempts.c.outcome).order_by(attempts.c.epoch))
    assert [row["outcome"] for row in outcomes] == ["expired", "expired", "failed"]


def test_a_lost_message_is_found_by_the_queue_being_shorter_than_the_steps_that_wait(engine: Engine) -> None:
    messages = begin(engine, 5)
    with engine.begin() as connection:
        assert take_lost(connection, "retrieve", queued=0, patience_seconds=60) == []
        assert take_lost(connection, "retrieve", queued=5, patience_seconds=0) == []
        assert take_lost(connection, "retrieve", queued=3, patience_seconds=-1) == messages[:2]


def test_only_kinds_with_a_step_that_is_ready_are_repaired(engine: Engine) -> None:
    def kinds() -> list[str]:
        with engine.connect() as connection:
            return ready_kinds(connection, KINDS)

    assert kinds() == []
    messages = begin(engine, 2)
    assert kinds() == ["retrieve"]
    dying = Ledger(engine, "dying", 0, find_system)
    dying.claim(messages)
    assert kinds() == []
    with engine.begin() as connection:
        expire_leases(connection)
    assert kinds() == ["retrieve"]


def test_a_submission_is_there_whole_or_not_at_all(engine: Engine, query: Query) -> None:
    twice = [Question(id="same", text="Who?"), Question(id="same", text="Where?")]
    with pytest.raises(Exception, match="questions_run_id_key_key"):
        submit(engine, submission(), twice, find_system)
    assert query(select(runs)) == query(select(questions)) == query(select(steps)) == []


def test_a_process_frozen_within_a_transaction_holds_nobody_up(engine: Engine) -> None:
    messages = begin(engine, 2)
    Ledger(engine, "w", 0, find_system).claim(messages)
    with engine.begin() as frozen, engine.begin() as connection:
        frozen.execute(update(steps).where(steps.c.id == messages[0].step_id).values(worker="w"))
        assert expire_leases(connection) == [messages[1].step_id]


def test_a_transaction_that_does_nothing_for_long_is_ended_by_the_database(engine: Engine) -> None:
    with engine.begin() as connection:
        limit = connection.execute(text("SHOW idle_in_transaction_session_timeout")).scalar_one()
    assert limit == f"{IDLE_SECONDS}s"


def test_code_of_others_may_take_longer_than_that(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotrail.models.schema.database.IDLE_SECONDS", 1)

    @own.system
    def slow(question: Question) -> System:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            pass
        yield Retrieve(query=question.text, count=1)
        return Answer(text="")

    impatient = connect(engine.url.render_as_string(hide_password=False))
    submit(impatient, replace(submission(), system="slow@1", settings={}), ask(1), lambda *_: slow)
    impatient.dispose()
    assert len(unsent(engine)) == 1


def test_a_claim_that_nobody_heard_the_answer_of_is_given_back_and_no_other(engine: Engine, query: Query) -> None:
    mine, others = Ledger(engine, "mine", LEASE, find_system), Ledger(engine, "others", LEASE, find_system)
    messages = begin(engine, 3)
    mine.claim(messages[:1])
    others.claim(messages[1:2])
    mine.disclaim(messages)
    states = query(select(steps.c.state, steps.c.epoch).order_by(steps.c.id))
    assert [(row["state"], row["epoch"]) for row in states] == [("ready", 1), ("running", 1), ("ready", 0)]
    assert query(select(attempts.c.outcome).order_by(attempts.c.step_id)) == [
        {"outcome": "released"},
        {"outcome": None},
    ]
