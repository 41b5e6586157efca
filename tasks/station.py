"""What a worker process has to work with: its place in the store, its engines, its indexes."""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TypeVar, cast

from tenacity import RetryCallState, Retrying, retry_if_exception, sleep_using_event, wait_exponential

from configuration.settings import Settings, settings
from cotrail.core.actions.registry import kind
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.ports.language_model import Generator, Profile
from cotrail.core.ports.retriever import Retriever
from cotrail.engines.language_models.catalogue import find_model, open_generator
from cotrail.errors import CorpusChangedError, OverdueError
from cotrail.systems.registry import find_system
from models.execution.claims import Claim, Completion, Renewal
from models.execution.ledger import Ledger
from models.records.dispatch import Dispatch
from models.records.runs import RunPlan
from models.schema.database import connect, reason_of, unanswered
from tasks.batching import Batcher
from tasks.evidence import EvidenceEngines, check_model
from tasks.failing import Failing
from tasks.held import Held
from tasks.outages import Outages
from tasks.routing import send

Done = TypeVar("Done")

logger = logging.getLogger(__name__)

BATCH_SECONDS = 0.04
"""How far apart a process's claims, and its commits, begin at least while it is crowded."""

CROWD = 8
"""How many threads make a crowd: fewer would wait longer than their waiting saves."""

UNRECORDED = 256
"""How many steps of a process may have ended and not be recorded yet: several times what commits leave behind them, so
that only a database that can't keep up is waited for."""


STUCK_SECONDS = 60.0
"""How long an execution that was cut off as overdue may take to notice, before its thread counts as stuck."""

BUSY_SECONDS = 600.0
"""How long a claim or a commit may take at most while the database answers."""


class Station:
    """One a process; threads share it.

    A database that doesn't answer is waited for: nothing that was computed is given up for it.
    """

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
        worker = f"{socket.gethostname()}:{os.getpid()}:{os.urandom(3).hex()}"
        self.ledger = Ledger(connect(settings.database, by_index=True), worker, settings.lease_seconds, find_system)
        self._away = False
        self._ahead: dict[Dispatch, Future[Held | None]] = {}
        self._held: dict[int, Held] = {}
        # By themselves: a step that was lost and claimed again here may be executed twice.
        self._executing: set[Held] = set()
        self._overdue: set[Held] = set()
        # By what comes of them: a step that was lost and claimed again here may be there twice.
        self._recording: dict[Future[None], Claim] = {}
        self._claims: Batcher[Dispatch, Held | None] = Batcher("claims", self._claim, BATCH_SECONDS, self._crowded)
        self._room = threading.BoundedSemaphore(UNRECORDED)
        self._commits: Batcher[Completion, None] = Batcher("commits", self._commit, BATCH_SECONDS, self._crowded)
        self._generators: dict[tuple[str, str], Generator] = {}
        self._retrievers: dict[str, Retriever] = {}
        self._opening = threading.Lock()
        self.outages = Outages()
        self.failing = Failing(self.ledger, self.outages, self.insist, settings.max_attempts)
        self.evidence = EvidenceEngines(settings.catalogue_path, settings.knowledge_path, self.generator)
        self._heartbeat = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._heartbeat.start()

    def claim_ahead(self, message: Dispatch) -> Future[Held | None]:
        """Has a message's step claimed before it is to be executed; the future tells when `claimed` needn't wait."""
        claim = self._claims.hand_in(message)
        self._ahead.setdefault(message, claim)
        return claim

    def forgo(self, messages: Iterable[Dispatch]) -> None:
        """Gives back what was claimed ahead by messages that nothing will be done for."""
        for message in messages:
            ahead = self._ahead.pop(message, None)
            held = ahead.result() if ahead and not ahead.exception() else None
            if held is not None:
                self.insist(self.ledger.defer, held.claim, 0.0)

    @contextmanager
    def claimed(self, message: Dispatch) -> Iterator[Held | None]:
        """Holds a message's step, its lease renewed all the while; None where it isn't to be had.

        A step that was handed to `commit` is held until that is done.
        """
        ahead = self._ahead.pop(message, None)
        held = ahead.result() if ahead else self._claims.do(message)
        if held is None or not self._leased(held):
            yield None
            return
        step_id = held.claim.step_id
        if lost := self._held.get(step_id):  # and claimed again, by this very process
            lost.cancellation.cancel()
        self._held[step_id] = held
        self._executing.add(held)
        try:
            yield held
        finally:
            self._executing.discard(held)
            self._overdue.discard(held)
            if self._held.get(step_id) is held:
                del self._held[step_id]

    def cancellation(self, claim: Claim) -> Cancellation:
        """What cuts a claim's generation off once its step is lost or cancelled."""
        held = self._held.get(claim.step_id)
        if held is not None and held.claim is claim:
            return held.cancellation
        lost = Cancellation()
        lost.cancel()
        return lost

    def commit(self, completion: Completion) -> None:
        """Has it recorded how a step ended, and what follows from it sent, while the caller goes on.

        Waits where as many are to be recorded as may be: no more is begun then than the database keeps up with.
        """
        self._room.acquire()
        claim = completion.claim
        future = self._commits.hand_in(completion)
        self._recording[future] = claim
        future.add_done_callback(self._recorded)

    def problem(self) -> str | None:
        """What keeps the process from its work and only a new one can mend; None where nothing does."""
        stuck = [held for held in self._overdue.copy() if held.took() > self._limit(held) + STUCK_SECONDS]
        if stuck:
            ids = ", ".join(str(held.claim.step_id) for held in stuck)
            return f"{len(stuck)} of its threads don't come back from their steps: {ids}"
        busy = max(self._claims.busy_seconds, self._commits.busy_seconds)
        if busy > BUSY_SECONDS and not self._away:
            return f"what it claims or records hasn't come to an end for {busy:.0f} s, though the database answers"
        return None

    def generator(self, run: RunPlan) -> Generator:
        """The model that a run was submitted with, loaded once; raises ModelChangedError, UnknownNameError."""
        generator = self.load(run.model_name, run.binding.profile)
        check_model(generator.identity, run.binding.model)
        return generator

    def load(self, name: str, profile: str) -> Generator:
        """A model in a serving profile, loaded once."""
        with self._opening:
            if (name, profile) not in self._generators:
                spec = find_model(self.settings.catalogue_path, name)
                self._generators[name, profile] = open_generator(
                    spec, cast(Profile, profile), self.settings.generation_slots
                )
            return self._generators[name, profile]

    def retriever(self, run: RunPlan) -> Retriever:
        """The corpus that a run was submitted with; raises CorpusChangedError, UnknownNameError, UnavailableError."""
        name = run.corpus or ""
        with self._opening:
            if name not in self._retrievers or self._retrievers[name].revision != run.binding.corpus:
                self._retrievers[name] = self.settings.corpus_store.open(name)
            retriever = self._retrievers[name]
        if retriever.revision != run.binding.corpus:
            raise CorpusChangedError(
                f"the corpus {name!r} was indexed anew since the run was submitted (then {run.binding.corpus}, "
                f"now {retriever.revision}); index the former files again, then `cotrail resume RUN`"
            )
        return retriever

    def reopen(self, claim: Claim) -> None:
        """Has a step's corpus opened anew: after a panic in a library in Rust its locks may be of no use any more."""
        with self._opening:
            self._retrievers.pop(claim.run.corpus or "", None)

    def insist(self, work: Callable[..., Done], *arguments: object) -> Done:
        """Does work on the store, again for as long as the database doesn't answer and the process isn't to end."""
        done = self._retrying(work, *arguments)
        self._away = False
        return done

    def stop(self) -> None:
        """Cuts off what the models are writing; each such step is given back."""
        self.stopping.set()
        for generator in list(self._generators.values()):
            generator.interrupt()

    def close(self) -> None:
        """Waits until all that ended is recorded, frees the engines, and gives back what wasn't begun.

        An engine whose threads outlive the interpreter can crash the process as it exits.
        """
        wait(list(self._recording))
        self._generators.clear()
        self.evidence.close()
        self.forgo(list(self._ahead))
        if self.stopping.is_set():
            self._heartbeat.join(self.settings.heartbeat_seconds)

    def _claim(self, messages: Sequence[Dispatch]) -> list[Held | None]:
        in_doubt = False

        def claim() -> list[Held | None]:
            nonlocal in_doubt
            if in_doubt:
                known = self._known()
                self.ledger.disclaim(message for message in messages if message.step_id not in known)
            in_doubt = True
            asked = time.monotonic()
            return [Held(claim, asked) if claim else None for claim in self.ledger.claim(messages)]

        return self.insist(claim)

    def _known(self) -> set[int]:
        """The steps that this process has claimed for certain: to be executed, being executed or being recorded."""
        claims = [held.claim for held in [*self._waiting(), *list(self._held.values())]]
        return {claim.step_id for claim in [*claims, *list(self._recording.values())]}

    def _waiting(self) -> list[Held]:
        """The steps that were claimed ahead and whose execution hasn't begun."""
        ahead = [each.result() for each in list(self._ahead.values()) if each.done() and not each.exception()]
        return [held for held in ahead if held is not None]

    def _leased(self, held: Held) -> bool:
        """Whether a step is this worker's still, as it is about to begin; asks the store where that isn't sure."""
        if time.monotonic() - held.renewed < self.settings.lease_seconds:
            return True
        logger.warning("the lease of step %d may have run out before it began", held.claim.step_id)
        return bool(self.insist(self.ledger.beat, [held.claim]).renewed)

    def _commit(self, completions: Sequence[Completion]) -> list[None]:
        if len(completions) == 1:
            following = [self.insist(self.ledger.record, completions[0])]
        else:
            following = self.insist(self.ledger.commit, completions)
        send([message for messages in following for message in messages])
        return [None] * len(completions)

    def _recorded(self, future: Future[None]) -> None:
        claim = self._recording.pop(future)
        self._room.release()
        if error := future.exception():
            logger.error("step %d isn't recorded and will be done again: %s", claim.step_id, error)

    def _crowded(self) -> bool:
        return len(self._held) + len(self._recording) >= CROWD

    def _given_up(self, state: RetryCallState) -> bool:
        return self.stopping.is_set() and state.attempt_number > 1

    def _met_outage(self, state: RetryCallState) -> None:
        """Says that the database doesn't answer: at the first try, and ever more seldom."""
        self._away = True
        number, error = state.attempt_number, state.outcome.exception() if state.outcome else None
        if error is not None and number.bit_count() == 1:
            logger.warning("the database doesn't answer, try %d: %s", number, reason_of(error))

    def _beat(self) -> None:
        while not self.stopping.wait(self.settings.heartbeat_seconds):
            try:
                self._give_sign()
                self._end_overdue()
            except BaseException:
                logger.exception("no sign of life was given this time")

    def _give_sign(self) -> None:
        """Renews the leases of all steps that this process holds, and ends the generations of those that are lost."""
        executing = [held for held in list(self._held.values()) if held not in self._overdue]
        holding = [*executing, *self._waiting()]
        claims = [*(held.claim for held in holding), *list(self._recording.values())]
        if not claims:
            return

        def beat() -> tuple[float, Renewal]:
            return time.monotonic(), self.ledger.beat(claims)

        asked, beaten = self.insist(beat)
        renewed, lost = ({id(claim) for claim in each} for each in (beaten.renewed, beaten.lost))
        for held in holding:
            if id(held.claim) in renewed:
                held.renewed = asked
            elif id(held.claim) in lost:
                logger.info("step %d isn't this worker's any more", held.claim.step_id)
                held.cancellation.cancel()

    def _end_overdue(self) -> None:
        """Cuts off the executions that take longer than their kind may: an engine that hangs would keep its steps."""
        for held in self._executing.copy():
            if held in self._overdue or held.took() <= self._limit(held):
                continue
            self._overdue.add(held)  # first: once it is settled, its thread may come back and take it out
            if not held.settle():
                self._overdue.discard(held)
                continue
            held.cancellation.cancel()
            # Whoever says what becomes of it may wait for the database; the leases of the others mustn't.
            threading.Thread(target=self._give_up, args=(held,), daemon=True).start()

    def _give_up(self, held: Held) -> None:
        claim, limit = held.claim, self._limit(held)
        error = OverdueError(
            f"no result within {limit:g} s, as COTRAIL_DEADLINES has it for {kind(claim.action)} steps; "
            f"it was tried in {self.ledger.worker}, whose engine may hang"
        )
        failure = self.failing.decide(claim, error)
        if failure is not None:
            self.commit(Completion(claim=claim, outcome=failure, milliseconds=held.took() * 1000))

    def _limit(self, held: Held) -> float:
        """How many seconds the execution of a step may take."""
        return self.settings.deadline(kind(held.claim.action))


_stations: dict[int, Station] = {}
_making = threading.Lock()


def station() -> Station:
    """The process's own; made when first asked for, so that a forked process makes one of its own."""
    process = os.getpid()
    if process not in _stations:
        with _making:
            if process not in _stations:
                _stations.clear()
                _stations[process] = Station(settings())
    return _stations[process]


def stop_station() -> None:
    """Stops the process's own, if it has made one."""
    if os.getpid() in _stations:
        _stations[os.getpid()].stop()


def close_station() -> None:
    """Closes the process's own, if it has made one; nothing may use it any more."""
    if os.getpid() in _stations:
        _stations[os.getpid()].close()
