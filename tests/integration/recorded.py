"""A store in which everything has happened that may happen to steps: runs whose audit trails are tested."""

from typing import Any

from msgspec.structs import replace
from sqlalchemy import Engine

from benchmarks.contenders.cotrail import submission
from cotrail.core.results import Failure
from cotrail.errors import CorpusChangedError, TransientStepError
from cotrail.models.commands.control import cancel, resume
from cotrail.models.commands.retrying import retry
from cotrail.models.commands.submission import open_experiment, submit
from cotrail.models.execution.leases import Claim
from cotrail.models.execution.ledger import Ledger
from cotrail.models.execution.recovery import expire_leases
from cotrail.models.records.steps import Dispatch
from cotrail.systems.registry import find_system
from tests.integration import test_evidence_store as evidence
from tests.integration.stepping import LEASE, ask, begin, close_runs, completed, run_to_end, unsent

FAILURE = Failure(type="IndexBroken", message='no "index": \u2028 \x7f \t é 💥\n')
NOTHING = Failure(type="EmptyGenerationError", message="the model wrote nothing")

PLAIN, PARALLEL, CANCELLED, FIRST, SECOND, OPEN = "plain", "parallel", "cancelled", "first", "second", "open"
CLOSED = (PLAIN, PARALLEL, CANCELLED, FIRST, SECOND)


def record(engine: Engine) -> None:
    """Fills an empty store with the runs."""
    for begun in (_plain, _parallel, _cancelled, _experiment, _open):
        begun(engine)
    assert sorted(close_runs(engine)) == sorted(CLOSED)


def _plain(engine: Engine) -> None:
    """IRCoT, with all that may happen to a step on its way: see each question."""
    ledger = Ledger(engine, "w", LEASE, find_system)
    messages = begin(engine, 6, id=PLAIN)
    again, retried, blocked, caught, failed, given_up = messages
    _end(ledger, again, FAILURE)
    retry(engine, PLAIN, find_system, failed=True, blocked=False)
    run_to_end(ledger, unsent(engine))
    _retried_lost_and_late(engine, ledger, retried)
    [sentence] = _end(ledger, caught)
    run_to_end(ledger, _end(ledger, sentence, NOTHING))
    _end(ledger, failed, FAILURE)
    _claim(Ledger(engine, "w", 0, find_system), given_up)
    _expire(engine)
    ledger.give_up([given_up.step_id], FAILURE)
    ledger.block(_claim(ledger, blocked), CorpusChangedError("indexed again"))
    resume(engine, PLAIN, find_system)
    run_to_end(ledger, unsent(engine))


def _retried_lost_and_late(engine: Engine, ledger: Ledger, message: Dispatch) -> None:
    """A step that is retried, then lost by its worker, and finally carried out by a worker whose lease expired."""
    ledger.retry(_claim(ledger, message), TransientStepError("not now"), 0)
    brief = Ledger(engine, "brief", 0, find_system)
    [message] = unsent(engine)
    _claim(brief, message)
    _expire(engine)
    [message] = unsent(engine)
    late = _claim(brief, message)
    _expire(engine)
    [following] = brief.commit([completed(late)])
    run_to_end(ledger, following)


def _parallel(engine: Engine) -> None:
    """Steps that were yielded together, with look-ups and comparisons."""
    submit(engine, replace(submission(), id=PARALLEL, **evidence.PLAN), ask(2), evidence.find_evidential)
    ledger = Ledger(engine, "w", LEASE, evidence.find_evidential)
    messages = evidence.first(engine)
    while messages:
        claims = [claim for claim in ledger.claim(messages) if claim is not None]
        messages = [m for following in ledger.commit([evidence.done(claim) for claim in claims]) for m in following]


def _cancelled(engine: Engine) -> None:
    """One question finished, the others with a step under way, one that was retried, one that waits."""
    ledger = Ledger(engine, "w", LEASE, find_system)
    finished, under_way, retried = begin(engine, 3, id=CANCELLED)
    run_to_end(ledger, [finished])
    claim = _claim(ledger, under_way)
    ledger.retry(_claim(ledger, retried), TransientStepError("not now"), 0)
    cancel(engine, CANCELLED)
    assert ledger.commit([completed(claim)]) == [[]]


def _experiment(engine: Engine) -> None:
    """Two runs; the second adopts what the first computed."""
    open_experiment(engine, "ours", {"cells": ["a", "b"]})
    ledger = Ledger(engine, "w", LEASE, find_system)
    for run in (FIRST, SECOND):
        run_to_end(ledger, begin(engine, 2, id=run, cell=run, experiment="ours", reuse=True))


def _open(engine: Engine) -> None:
    """A run under way: a question finished, one being worked on, one blocked, one that waits."""
    ledger = Ledger(engine, "w", LEASE, find_system)
    submit(engine, replace(submission(), id=OPEN), ask(4), find_system)
    finished, under_way, blocked, _ = unsent(engine)
    run_to_end(ledger, [finished])
    [message] = _end(ledger, under_way)
    _claim(ledger, message)
    ledger.block(_claim(ledger, blocked), CorpusChangedError("indexed again"))


def _claim(ledger: Ledger, message: Dispatch) -> Claim:
    [claim] = ledger.claim([message])
    assert claim is not None
    return claim


def _end(ledger: Ledger, message: Dispatch, outcome: Any = None) -> list[Dispatch]:
    [following] = ledger.commit([completed(_claim(ledger, message), outcome)])
    return following


def _expire(engine: Engine) -> None:
    with engine.begin() as connection:
        assert len(expire_leases(connection)) == 1
