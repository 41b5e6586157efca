"""The life of one step in a worker: claim, execute, commit, send what follows (docs/architecture.md)."""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from celery import shared_task
from celery.exceptions import Ignore, Reject
from celery.worker.request import Request

from cotrail.core.actions.registry import KINDS, kind_of
from cotrail.core.history import Outcome
from cotrail.core.ports.batches import UnusableAnswer
from cotrail.core.ports.cancellation import Interrupted
from cotrail.core.results import Failure, Result
from cotrail.models.execution.leases import Claim, Completion
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.states import AttemptOutcome
from cotrail.tasks.engines import StepEngines
from cotrail.tasks.failures import needed
from cotrail.tasks.micro_batching import AwaitsBatch
from cotrail.tasks.routing import Lease, task_name
from cotrail.tasks.runtime import Runtime, current_runtime

logger = logging.getLogger(__name__)

Execute = Callable[[Runtime, Claim], Result]


def carry_out(runtime: Runtime, claim: Claim) -> Result:
    """Computes a step's result with the engines of its run, as its kind says."""
    answers = partial(runtime.insist, runtime.ledger.batch_answers, claim) if claim.run.batched else None
    cancellation = runtime.cancellation(claim)
    if claim.run.asked:
        cancellation.listener = runtime.telling.listener(claim)
    engines = StepEngines(runtime.engines, claim.run, cancellation, answers)
    action = claim.carried_out
    try:
        result: Result = kind_of(action).carry_out(action, engines)
    except UnusableAnswer as unusable:
        # The answer stays with the step, so that each retry would take the same unusable one again.
        runtime.insist(runtime.ledger.forget_answers, claim)
        raise unusable.error from None
    return result


def perform(message: Dispatch, execute: Execute) -> Failure | AttemptOutcome | None:
    """Executes or adopts a step unless its claim fails, records how it ended, and sends what follows from it.

    Returns what became of it: the failure that it ended with, or how its execution ended; None where it couldn't be
    claimed, as another worker has it, or nobody needs it any more.

    Every execution of every step comes through here, the first as well as one after a crash. Celery gets nothing but an
    `Exception`: after anything else it never gives that thread work again.
    """
    try:
        return _perform(message, execute)
    except BaseException as error:
        if isinstance(error, Exception) or _ends_process(error):
            raise
        raise RuntimeError(f"step {message.step_id} ended in a panic: {error!r}") from error


def _perform(message: Dispatch, execute: Execute) -> Failure | AttemptOutcome | None:
    runtime = current_runtime()
    if runtime.stopping.is_set():
        runtime.give_back([message])
        raise Reject("the worker is shutting down", requeue=True)
    with runtime.claimed(message) as lease:
        if lease is None:
            logger.debug("step %d in epoch %d can't be claimed", message.step_id, message.epoch)
            return None
        completion = _completion(runtime, lease, execute)
        if isinstance(completion, AttemptOutcome):
            return completion
        runtime.commit(completion)
        return completion.outcome if isinstance(completion.outcome, Failure) else AttemptOutcome.FINISHED


def _completion(runtime: Runtime, lease: Lease, execute: Execute) -> Completion | AttemptOutcome:
    """How the step ended, here, where its twin was computed or as a person gave it; otherwise how this execution ended.

    Nothing is executed where there is a result already.
    """
    claim = lease.claim
    if claim.adopted is not None:
        return Completion(claim=claim, outcome=claim.adopted.outcome, milliseconds=claim.adopted.milliseconds)
    if (given := claim.given) is not None:
        return Completion(claim=claim, outcome=given, milliseconds=0)
    # Only now: what has a result already needs no engine, whether that is away or not.
    wait = runtime.breaker.wait(needed(claim))
    if wait is not None:
        runtime.insist(runtime.ledger.defer, claim, wait)
        return AttemptOutcome.UNAVAILABLE
    started = time.perf_counter()
    outcome = _outcome(runtime, lease, execute)
    if isinstance(outcome, AttemptOutcome):
        return outcome
    return Completion(claim=claim, outcome=outcome, milliseconds=(time.perf_counter() - started) * 1000)


def _outcome(runtime: Runtime, lease: Lease, execute: Execute) -> Outcome | AttemptOutcome:
    """The step's result or failure; how this execution ended where it was given back, here or as overdue."""
    claim = lease.claim
    lease.begin()
    try:
        result = execute(runtime, claim)
        result.check_recordable()
    except Interrupted:
        # This may have been the trial for whose end all others wait; the next one has to be a trial then.
        runtime.breaker.cut_off(needed(claim))
        if lease.settle():
            runtime.insist(runtime.ledger.release, [claim])
        return AttemptOutcome.RELEASED
    except AwaitsBatch as awaited:
        if lease.settle():
            runtime.insist(runtime.ledger.hand_over, claim, awaited.model_name, awaited.body)
        return AttemptOutcome.BATCHED
    except BaseException as error:  # a panic of a library in Rust is no Exception, and must not cost a thread either
        if _ends_process(error):
            raise
        if not isinstance(error, Exception):
            runtime.engines.forget_retrievers(claim.run)
        return runtime.failures.decide(claim, error) if lease.settle() else AttemptOutcome.RETRIED
    # The heartbeat has given it up as overdue and recorded that; a claim has one end only.
    if not lease.settle():
        logger.warning("step %d has a result after all, %.0f s after it began", claim.step_id, lease.took())
        return AttemptOutcome.RETRIED
    if runtime.breaker.succeeded(needed(claim)):
        logger.info("%s is back", needed(claim))
    return result


def _ends_process(error: BaseException) -> bool:
    """Return whether the process is asked to end by this: only its main thread is."""
    return isinstance(error, SystemExit | KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


# The Celery tasks: one for each kind of action, named `cotrail.KIND`, made from the registry.
#
# Every step is a task of its own, so that each search and each generation has its own message, lease and record.

UNCLAIMED = "unclaimed"
"""The step is another worker's, or ended already: its message came twice, or late."""

_EVENTS = {AttemptOutcome.RETRIED: "retried", None: UNCLAIMED}
"""Events whose names aren't the outcome's. Of names that Celery doesn't know, monitors make states: BLOCKED."""


class NotFinished(Ignore):  # type: ignore[misc, unused-ignore]
    """Raised by a task whose step has no result: Celery takes no return for anything but a success.

    became: the failure that the step ended with, or how this execution ended; None where the step couldn't be claimed.
    """

    def __init__(self, became: Failure | AttemptOutcome | None) -> None:
        super().__init__(became)
        self.became = became

    def event(self) -> tuple[str, dict[str, str]]:
        """Return the event and its fields. Messages stay in PostgreSQL, where `cotrail show` finds them."""
        if isinstance(self.became, Failure):
            return "task-failed", {"exception": self.became.type, "traceback": ""}
        name = f"task-{_EVENTS.get(self.became, self.became)}"
        return name, {"exception": "", "traceback": ""} if name == "task-retried" else {}


class StepRequest(Request):  # type: ignore[misc, unused-ignore]
    """A message as a worker holds it, which says at its end what became of its step, if anybody listens."""

    def on_failure(self, exc_info: Any, *arguments: Any, **named: Any) -> Any:
        """Tell the monitors, then do what Celery does."""
        raised = getattr(exc_info.exception, "exc", exc_info.exception)  # billiard wraps it together with its traceback
        if isinstance(raised, NotFinished):
            event, fields = raised.event()
            self.send_event(event, **fields)
        return super().on_failure(exc_info, *arguments, **named)


def _register(kind: str) -> None:
    @shared_task(name=task_name(kind), Request=StepRequest)
    def execute(step_id: int, epoch: int) -> None:
        # By the module, so that tests can watch every step of a worker by replacing `step.perform`.
        became = perform(Dispatch(step_id, epoch, kind), carry_out)
        if became is not AttemptOutcome.FINISHED:
            raise NotFinished(became)


for _kind in KINDS:
    _register(_kind)
