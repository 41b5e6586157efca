"""The runtime of a worker process: it claims steps, keeps their leases by heartbeats, and commits how they ended."""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, sleep_using_event, wait_exponential

from cotrail.configuration.deadlines import deadline_of
from cotrail.configuration.extensions import brings
from cotrail.configuration.settings import Settings, settings
from cotrail.core.actions.registry import kind_of
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.results import Failure
from cotrail.errors import OutdatedError, OverdueError
from cotrail.models.execution.leases import Claim, Completion, Leases, Renewal
from cotrail.models.execution.ledger import Ledger
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.database import connect, reason_of, unanswered
from cotrail.systems.registry import find_system
from cotrail.tasks.engines import LoadedEngines
from cotrail.tasks.failures import CircuitBreaker, FailureHandler
from cotrail.tasks.micro_batching import MicroBatcher
from cotrail.tasks.routing import Lease, Turns, send
from cotrail.tasks.telling import Telling

Done = TypeVar("Done")

logger = logging.getLogger(__name__)

BATCH_SECONDS = 0.04
"""Least time between the beginnings of a process's claims, and of its commits, while it is crowded."""

CROWDED_STEPS = 8
"""From how many steps on a process is crowded: fewer would wait longer than their waiting saves."""

MOST_UNRECORDED = 256
"""Backpressure: how many steps of a process may have ended and not be recorded yet. That is several times what commits
leave waiting, so that threads wait only for a database that can't keep up."""

STUCK_SECONDS = 60.0
"""How long an execution that was cut off as overdue may take to notice, before its thread counts as stuck."""

BUSY_SECONDS = 600.0
"""Longest time that a claim or a commit may take while the database answers."""


class Runtime:
    """One for each process, shared by its threads.

    A database that doesn't answer is waited for: nothing that was computed is lost to an outage.
    """

    # There is no lock around the dictionaries and sets below. Single reads and writes of them are atomic under the GIL,
    # and so are the copies (`list(...)`, `.copy()`) that are iterated over. A step that enters or leaves them
    # meanwhile is seen by the next heartbeat, which is early enough: a lease lasts for several.

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stopping = threading.Event()
        self._retrying = Retrying(
            retry=retry_if_exception(unanswered),
            wait=wait_exponential(multiplier=0.05, max=1),
            stop=self._given_up,
            before_sleep=self._met_outage,
            sleep=sleep_using_event(self.stopping),
            reraise=True,
        )
        # Host and process id alone may come again, as in a container that is started again: a lease of the process
        # before isn't this one's to give back.
        worker = f"{socket.gethostname()}:{os.getpid()}:{os.urandom(3).hex()}"
        engine, lease = connect(settings.database, by_index=True), settings.lease_seconds
        self.ledger = Ledger(engine, worker, lease, find_system, brings(allowed=settings.stored_systems))
        # Connections of its own: hundreds of steps that end at once would have it wait until leases ran out.
        self._beats = Leases(connect(settings.database, pool_size=1, by_index=True), worker, lease)
        self._away = False  # whether the database was away the last time; any thread writes it, and the latest counts
        self._ahead: dict[Dispatch, Future[Lease | None]] = {}
        self._held: dict[int, Lease] = {}
        # Of leases and not by step: a step that was lost and claimed again here may be executed twice at a time.
        self._executing: set[Lease] = set()
        self._overdue: set[Lease] = set()
        # By future and not by step: a step that was lost and claimed again here may be there twice.
        self._recording: dict[Future[None], Claim] = {}
        self._claims = MicroBatcher("claims", self._claim, BATCH_SECONDS, self._crowded)
        turns = Turns(partial(self.insist, self.ledger.next_in_turn), self._claim)
        self._claims_in_turn = MicroBatcher("claims in turn", turns.claim, BATCH_SECONDS, self._crowded)
        self._room = threading.BoundedSemaphore(MOST_UNRECORDED)
        self._commits = MicroBatcher("commits", self._commit, BATCH_SECONDS, self._crowded)
        self.breaker = CircuitBreaker()
        self.failures = FailureHandler(self.ledger, self.breaker, self.insist, settings.max_attempts)
        self.engines = LoadedEngines(settings)
        self.telling = Telling(settings.broker, settings.broker_prefix)
        self._heartbeat = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._heartbeat.start()

    def claim_ahead(self, message: Dispatch, *, in_turn: bool = False) -> Future[Lease | None]:
        """Has a message's step claimed before a thread takes it up; once the future is done, `claimed` doesn't wait.

        in_turn: whether the step is claimed whose turn it is, instead of the message's own (`cotrail.tasks.routing`).
        """
        if in_turn:
            # A second message for a step claims nothing ahead: its lease would be held under the same message.
            return self._ahead.get(message) or self._hold_ahead(message, self._claims_in_turn.hand_in(message))
        return self._hold_ahead(message, self._claims.hand_in(message))

    def give_back(self, messages: Iterable[Dispatch]) -> None:
        """Gives back steps that were claimed ahead and won't be executed here."""
        for message in messages:
            ahead = self._ahead.pop(message, None)
            # Waits for a claim that is under way, whose step would otherwise be held until its lease ran out.
            lease = ahead.result() if ahead and not ahead.exception() else None
            if lease is not None:
                self.insist(self.ledger.defer, lease.claim, 0.0)

    @contextmanager
    def claimed(self, message: Dispatch) -> Iterator[Lease | None]:
        """Holds a message's step and renews its lease meanwhile; None where it can't be claimed.

        A step that was handed to `commit` is held until that is done.
        """
        ahead = self._ahead.pop(message, None)
        lease = ahead.result() if ahead else self._claims.do(message)
        if lease is None or not self._leased(lease):
            yield None
            return
        step_id = lease.claim.step_id
        if lost := self._held.get(step_id):  # its lease ran out, and this same process claimed it again
            lost.cancellation.cancel()
        self._held[step_id] = lease
        self._executing.add(lease)
        try:
            yield lease
        finally:
            self._executing.discard(lease)
            self._overdue.discard(lease)
            if self._held.get(step_id) is lease:
                del self._held[step_id]

    def cancellation(self, claim: Claim) -> Cancellation:
        """The cancellation of a claim's generation, for when its step is lost or cancelled."""
        lease = self._held.get(claim.step_id)
        if lease is not None and lease.claim is claim:
            return lease.cancellation
        # Lost, and perhaps claimed again by this process: that execution must not be cut off in place of this one.
        lost = Cancellation()
        lost.cancel()
        return lost

    def commit(self, completion: Completion) -> None:
        """Has it recorded how a step ended, and has what follows sent; the caller doesn't wait for either.

        It waits where `MOST_UNRECORDED` steps are to be recorded already (backpressure): then nothing is begun that the
        database can't keep up with.
        """
        self._room.acquire()
        claim = completion.claim
        future = self._commits.hand_in(completion)
        # Before the callback is added, which is called at once where the future is done already, and takes this out
        # again.
        self._recording[future] = claim
        future.add_done_callback(self._recorded)

    def problem(self) -> str | None:
        """The problem that keeps the process from its work and that only a restart ends; None where there is none."""
        stuck = [lease for lease in self._overdue.copy() if lease.took() > self._limit(lease) + STUCK_SECONDS]
        if stuck:
            ids = ", ".join(str(lease.claim.step_id) for lease in stuck)
            return f"{len(stuck)} of its threads don't come back from their steps: {ids}"
        busy = max(each.busy_seconds for each in (self._claims, self._claims_in_turn, self._commits))
        if busy > BUSY_SECONDS and not self._away:
            return f"what it claims or records hasn't come to an end for {busy:.0f} s, though the database answers"
        return None

    def insist(self, work: Callable[..., Done], *arguments: object) -> Done:
        """Does work on the store, again for as long as the database doesn't answer and the process isn't stopping."""
        done = self._retrying(work, *arguments)
        self._away = False
        return done

    def stop(self) -> None:
        """Cuts off what the language models are writing; each such step is given back."""
        self.stopping.set()
        self.engines.interrupt()

    def close(self) -> None:
        """Waits until all that ended is recorded, frees the engines, and gives back steps that weren't begun."""
        wait(list(self._recording))
        # An engine whose threads outlive the interpreter can crash the process as it exits.
        self.engines.close()
        self.give_back(list(self._ahead))
        if self.stopping.is_set():
            self._heartbeat.join(self.settings.heartbeat_seconds)

    def _hold_ahead(self, message: Dispatch, claim: Future[Lease | None]) -> Future[Lease | None]:
        # Of two messages for a step the first claim counts: the second one's comes out as None.
        self._ahead.setdefault(message, claim)
        return claim

    def _claim(self, messages: Sequence[Dispatch]) -> list[Lease | None]:
        in_doubt = False

        def claim() -> list[Lease | None]:
            nonlocal in_doubt
            # The connection may break after the COMMIT and before its confirmation. Such claims are given back before
            # they are tried again, except steps that this process has claimed for certain by other messages.
            if in_doubt:
                leases = [*self._waiting(), *list(self._held.values())]
                claims = [*(lease.claim for lease in leases), *list(self._recording.values())]
                certain = {claim.step_id for claim in claims}
                self.ledger.disclaim(message for message in messages if message.step_id not in certain)
            in_doubt = True
            began = time.monotonic()
            return [Lease(claim, began) if claim else None for claim in self.ledger.claim(messages)]

        try:
            return self.insist(claim)
        except OutdatedError as error:
            logger.error("nothing is claimed: %s", error)
            return [None] * len(messages)

    def _waiting(self) -> list[Lease]:
        ahead = [each.result() for each in list(self._ahead.values()) if each.done() and not each.exception()]
        return [lease for lease in ahead if lease is not None]

    def _leased(self, lease: Lease) -> bool:
        """Return whether a step that is about to begin is still this worker's; asks the store where that isn't sure."""
        if time.monotonic() - lease.renewed < self.settings.lease_seconds:
            return True
        logger.warning("the lease of step %d may have run out before it began", lease.claim.step_id)
        return bool(self.insist(self.ledger.beat, [lease.claim]).renewed)

    def _commit(self, completions: Sequence[Completion]) -> list[None]:
        # A single completion is recorded whatever it is, if need be as a failure. Of several, one that the database
        # refuses would take the others down with it: the batcher then has each recorded alone.
        if len(completions) == 1:
            following = [self.insist(self.ledger.record, completions[0])]
        else:
            following = self.insist(self.ledger.commit, completions)
        # Behind the commit: who is notified reads the store at once, and would find nothing new there.
        for question_id in {done.claim.question_id for done in completions if done.claim.run.asked}:
            self.telling.ended(question_id)
        send([message for messages in following for message in messages])
        return [None] * len(completions)

    def _recorded(self, future: Future[None]) -> None:
        claim = self._recording.pop(future)
        self._room.release()
        if error := future.exception():
            logger.error("step %d isn't recorded and will be done again: %s", claim.step_id, error)

    def _crowded(self) -> bool:
        return len(self._held) + len(self._recording) >= CROWDED_STEPS

    def _given_up(self, state: RetryCallState) -> bool:
        # Once more even while stopping: the database may take what has just ended.
        return self.stopping.is_set() and state.attempt_number > 1

    def _met_outage(self, state: RetryCallState) -> None:
        """Logs that the database doesn't answer: at the first try, the second, the fourth, the eighth and so on."""
        self._away = True
        number, error = state.attempt_number, state.outcome.exception() if state.outcome else None
        if error is not None and number.bit_count() == 1:
            logger.warning("the database doesn't answer, try %d: %s", number, reason_of(error))

    def _beat(self) -> None:
        while not self.stopping.wait(self.settings.heartbeat_seconds):
            try:
                self._renew_leases()
                self._end_overdue()
            except BaseException:
                logger.exception("a heartbeat failed")

    def _renew_leases(self) -> None:
        """Heartbeat: renews the leases of all steps held here, and cuts off the generations of those that are lost."""
        # Those that are overdue are being given up. If that fails, their leases are to run out, so that others try
        # them.
        executing = [lease for lease in list(self._held.values()) if lease not in self._overdue]
        holding = [*executing, *self._waiting()]
        # What ended and isn't recorded yet keeps its lease too: a slow database would otherwise have it computed again.
        claims = [*(lease.claim for lease in holding), *list(self._recording.values())]
        if not claims:
            return

        def beat() -> tuple[float, Renewal]:
            # The time before the query, not after: the lease runs from when the database got it at the latest.
            return time.monotonic(), self._beats.beat(claims)

        began, beaten = self.insist(beat)
        # By identity: claims hold a run's settings, which can't be hashed.
        renewed, lost = ({id(claim) for claim in each} for each in (beaten.renewed, beaten.lost))
        for lease in holding:
            if id(lease.claim) in renewed:
                lease.renewed = began
            elif id(lease.claim) in lost:
                logger.info("step %d isn't this worker's any more", lease.claim.step_id)
                lease.cancellation.cancel()

    def _end_overdue(self) -> None:
        """Cuts off executions that take longer than their kind may: an engine that hangs would keep its steps."""
        for lease in self._executing.copy():
            if lease in self._overdue or lease.took() <= self._limit(lease):
                continue
            self._overdue.add(lease)  # before `settle`: after it, the step's thread may return and take it out
            if not lease.settle():
                self._overdue.discard(lease)
                continue
            lease.cancellation.cancel()
            # In a thread of its own, as recording it may wait for the database, and the other leases mustn't.
            threading.Thread(target=self._give_up, args=(lease,), name="overdue", daemon=True).start()

    def _give_up(self, lease: Lease) -> None:
        claim, limit = lease.claim, self._limit(lease)
        error = OverdueError(
            f"no result within {limit:g} s, as COTRAIL_DEADLINES has it for {kind_of(claim.action).name} steps; "
            f"it was tried in {self.ledger.worker}, whose engine may hang"
        )
        failure = self.failures.decide(claim, error)
        if isinstance(failure, Failure):
            self.commit(Completion(claim=claim, outcome=failure, milliseconds=lease.took() * 1000))

    def _limit(self, lease: Lease) -> float:
        return deadline_of(kind_of(lease.claim.action).name, self.settings)


_runtimes: dict[int, Runtime] = {}
_making = threading.Lock()


def current_runtime() -> Runtime:
    """The process's runtime; made when it is first asked for, so that a forked process makes one of its own."""
    process = os.getpid()
    # Looked up again under the lock: of several threads that find nothing, only one may make a runtime.
    if process not in _runtimes:
        with _making:
            if process not in _runtimes:
                # What a forked process finds here is its parent's, whose threads don't exist in it.
                _runtimes.clear()
                _runtimes[process] = Runtime(settings())
    return _runtimes[process]


def stop_runtime() -> None:
    """Stops the process's runtime, if it has one."""
    if os.getpid() in _runtimes:
        _runtimes[os.getpid()].stop()


def close_runtime() -> None:
    """Closes the process's runtime, if it has one; nothing may use it any more."""
    if os.getpid() in _runtimes:
        _runtimes[os.getpid()].close()
