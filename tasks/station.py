"""What a worker process has to work with: its place in the store, its engines, its indexes."""

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TypeVar, cast

from msgspec import Struct
from tenacity import RetryCallState, Retrying, retry_if_exception, sleep_using_event, wait_exponential

from cotrail.errors import CorpusChangedError
from cotrail.generation.cancellation import Cancellation
from cotrail.generation.catalogue import find_model, open_generator
from cotrail.generation.generator import Generator, Profile
from cotrail.retrieval.retriever import Retriever
from models.advancing import Dispatch
from models.database import connect, unanswered
from models.ledger import Claim, Completion, Ledger
from models.runs import RunPlan
from tasks.batching import Batcher
from tasks.evidence import EvidenceEngines, check_model
from tasks.outages import Outages
from tasks.routing import send
from tasks.settings import Settings, settings

Done = TypeVar("Done")

logger = logging.getLogger(__name__)

BATCH_SECONDS = 0.04
"""How far apart a process's claims, and its commits, begin at least while it is crowded."""

CROWD = 8
"""How many threads make a crowd: fewer would wait longer than their waiting saves."""

UNRECORDED = 256
"""How many steps of a process may have ended and not be recorded yet: several times what commits leave behind them, so
that only a database that can't keep up is waited for."""


class Held(Struct, frozen=True):
    """A claim that is being executed, and what cuts its generation off."""

    claim: Claim
    cancellation: Cancellation


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
            sleep=sleep_using_event(self.stopping),
            reraise=True,
        )
        worker = f"{socket.gethostname()}:{os.getpid()}:{os.urandom(3).hex()}"
        self.ledger = Ledger(connect(settings.database, by_index=True), worker, settings.lease_seconds)
        self._ahead: dict[Dispatch, Future[Claim | None]] = {}
        self._held: dict[int, Held] = {}
        # By what comes of them: a step that was lost and claimed again here may be there twice.
        self._recording: dict[Future[None], Claim] = {}
        self._claims: Batcher[Dispatch, Claim | None] = Batcher("claims", self._claim, BATCH_SECONDS, self._crowded)
        self._room = threading.BoundedSemaphore(UNRECORDED)
        self._commits: Batcher[Completion, None] = Batcher("commits", self._commit, BATCH_SECONDS, self._crowded)
        self._generators: dict[tuple[str, str], Generator] = {}
        self._retrievers: dict[str, Retriever] = {}
        self._opening = threading.Lock()
        self.outages = Outages()
        self.evidence = EvidenceEngines(settings.catalogue_path, settings.knowledge_path, self.generator)
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def claim_ahead(self, message: Dispatch) -> Future[Claim | None]:
        """Has a message's step claimed before it is to be executed; the future tells when `claimed` needn't wait."""
        claim = self._claims.hand_in(message)
        self._ahead.setdefault(message, claim)
        return claim

    def forgo(self, messages: Iterable[Dispatch]) -> None:
        """Gives back what was claimed ahead by messages that nothing will be done for."""
        for message in messages:
            ahead = self._ahead.pop(message, None)
            claim = ahead.result() if ahead and not ahead.exception() else None
            if claim is not None:
                self.insist(self.ledger.defer, claim, 0.0)

    @contextmanager
    def claimed(self, message: Dispatch) -> Iterator[Claim | None]:
        """Holds a message's step, its lease renewed all the while; None where it isn't to be had.

        A step that was handed to `commit` is held until that is done.
        """
        ahead = self._ahead.pop(message, None)
        claim = ahead.result() if ahead else self._claims.do(message)
        if claim is None:
            yield None
            return
        if lost := self._held.get(claim.step_id):  # and claimed again, by this very process
            lost.cancellation.cancel()
        held = self._held[claim.step_id] = Held(claim, Cancellation())
        try:
            yield claim
        finally:
            if self._held.get(claim.step_id) is held:
                del self._held[claim.step_id]

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

    def insist(self, work: Callable[..., Done], *arguments: object) -> Done:
        """Does work on the store, again for as long as the database doesn't answer and the process isn't to end."""
        return self._retrying(work, *arguments)

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

    def _claim(self, messages: Sequence[Dispatch]) -> list[Claim | None]:
        in_doubt = False

        def claim() -> list[Claim | None]:
            nonlocal in_doubt
            if in_doubt:
                known = self._known()
                self.ledger.disclaim(message for message in messages if message.step_id not in known)
            in_doubt = True
            return self.ledger.claim(messages)

        return self.insist(claim)

    def _known(self) -> set[int]:
        """The steps that this process has claimed for certain: to be executed, being executed or being recorded."""
        ahead = [each.result() for each in list(self._ahead.values()) if each.done() and not each.exception()]
        claims = [*filter(None, ahead), *(held.claim for held in list(self._held.values()))]
        return {claim.step_id for claim in [*claims, *list(self._recording.values())]}

    def _commit(self, completions: Sequence[Completion]) -> list[None]:
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

    def _beat(self) -> None:
        while not self.stopping.wait(self.settings.heartbeat_seconds):
            executing, recording = list(self._held.values()), list(self._recording.values())
            held = [*(each.claim for each in executing), *recording]
            try:
                if held:
                    self._cut_off(executing, self.insist(self.ledger.beat, held))
            except Exception:
                logger.exception("no sign of life was given this time")

    def _cut_off(self, executing: Sequence[Held], lost: Sequence[Claim]) -> None:
        """Ends the generations whose results can't count any more."""
        for held in executing:
            if any(held.claim is claim for claim in lost):
                logger.info("step %d isn't this worker's any more", held.claim.step_id)
                held.cancellation.cancel()


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
