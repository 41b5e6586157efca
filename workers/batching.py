"""Batches in a generation worker: a thread sends what waits for one, asks providers how far they are, takes answers.

Generation workers do this and not maintenance, since they have the keys of the models. Of all of them one does at a
time, which is the one that holds an advisory lock, as among maintenance processes.
"""

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import timedelta
from itertools import islice

from sqlalchemy import Engine

from cotrail.configuration.settings import Settings
from cotrail.core.ports.batches import BatchAnswer, BatchService, BatchStatus, Unanswered
from cotrail.engines.language_models.catalogue import ModelSpec, Server, find_model
from cotrail.engines.language_models.endpoint import BatchApi
from cotrail.engines.language_models.served.batches.requests import ProviderRequests
from cotrail.engines.language_models.served.batches.services import AnthropicBatches, MistralBatches, OpenAIBatches
from cotrail.engines.language_models.served.client import key_of
from cotrail.engines.language_models.served.protocols.wire_protocols import PROTOCOLS
from cotrail.errors import BatchLostError, BlockedError, CotrailError, StepError, UnavailableError
from cotrail.models.execution import batches
from cotrail.models.execution.batches import OpenBatch
from cotrail.models.schema.database import BATCHES_LEADER, BATCHES_PREFIX, reason_of
from cotrail.workers.leading import Backoff, Session, session

_APIS: Mapping[BatchApi, Callable[[ProviderRequests, str], BatchService]] = {
    "openai": OpenAIBatches,
    "anthropic": AnthropicBatches,
    "mistral": MistralBatches,
}


def open_batch_service(spec: ModelSpec) -> BatchService:
    """The batch API of a model's provider; raises BlockedError where it has none any more, or its key isn't set."""
    engine = spec.engine
    if not isinstance(engine, Server) or engine.batch is None:
        raise BlockedError(f"the table of the model {spec.name} has no `batch` any more, which batches under way need")
    protocol = PROTOCOLS[engine.api]
    requests = ProviderRequests(engine, protocol.headers(key_of(engine)))
    return _APIS[engine.batch](requests, protocol.path(engine, streams=False))


logger = logging.getLogger(__name__)

DELIVERED = 200
"""The number of answers that one transaction records."""

SHARE_OF_AGE, LONGEST_POLL = 0.05, 60.0
"""A provider is asked about a batch after this share of the batch's age, and after so many seconds at most."""

RECOVERY_SECONDS = 10.0
"""How long a batch is left alone that was about to be sent, and how often it is then looked for."""

CLOCK_SECONDS = 600.0
"""How far the provider's clock and the database's may differ."""

FULL_SECONDS = 60.0
"""How long an account that had no room for a single request isn't sent another one."""

SOUGHT = "it isn't known whether the provider has it, and its list doesn't show it so far"
"""What is said of a batch that is looked for."""

LONGEST_PAUSE = 60.0
"""The longest pause, in seconds, after an unforeseen error."""


class SupersededError(UnavailableError):
    """Another process has taken over a batch that this one was about to send."""


class Batching:
    """Sends and collects batches; sender: names this process in the store."""

    def __init__(self, settings: Settings, engine: Engine, sender: str, stopping: threading.Event) -> None:
        self._settings = settings
        self._engine = engine
        self._sender = sender
        self._stopping = stopping
        self._services: dict[str, BatchService] = {}

    def run(self) -> None:
        """Work until asked to stop, whenever this process leads."""
        pause = self._settings.sweep_seconds
        again = Backoff(pause, LONGEST_PAUSE)
        while not self._stopping.is_set():
            try:
                with session(self._engine, pause, BATCHES_LEADER, BATCHES_PREFIX) as own:
                    while not self._stopping.wait(pause):
                        if own.lead():
                            self.tend(own)
                        again.attempted(succeeded=True)
            except Exception as error:  # noqa: BLE001 - whatever it is, the next try may succeed
                again.attempted(succeeded=False)
                logger.warning("batches are looked at again in %.0f s: %s", again.pause, reason_of(error))
                self._stopping.wait(again.pause)

    def tend(self, own: Session) -> None:
        """Do what is due for all batches and all requests that wait for one."""
        with self._engine.begin() as connection:
            under_way, waiting = batches.read_open(connection), batches.waiting_models(connection)
        by_model: dict[str, list[OpenBatch]] = defaultdict(list)
        for batch in under_way:
            by_model[batch.model_name].append(batch)
        names = sorted(by_model.keys() | set(waiting))
        with own.kept() if names else nullcontext():
            for name in names:
                self._tend_model(name, [batch for batch in by_model[name] if self._is_due(batch)])

    def _tend_model(self, name: str, due: list[OpenBatch]) -> None:
        try:
            service = self._service(name)
        except CotrailError as error:
            for batch in due:
                self._note(batch.key, name, error)
            return
        # Answers first: what follows from them may be in the next batch.
        collected = [self._attend(batch, service) for batch in due]
        if all(collected):
            self._send_waiting(name, service)

    def _service(self, name: str) -> BatchService:
        if name not in self._services:
            self._services[name] = open_batch_service(find_model(self._settings.catalogue_path, name))
        return self._services[name]

    def _note(self, key: str, name: str, error: CotrailError) -> None:
        logger.warning("batch %s of %s: %s", key, name, error)
        with self._engine.begin() as connection:
            batches.troubled(connection, key, str(error))

    def _is_due(self, batch: OpenBatch) -> bool:
        if batch.provider_id is None:
            # Its sender may still be at work on it: only after a while is it looked for.
            return batch.unchecked >= min(RECOVERY_SECONDS, self._settings.batch_recovery_seconds)
        return not batch.wanted or batch.unchecked >= min(SHARE_OF_AGE * batch.age, LONGEST_POLL)

    def _attend(self, batch: OpenBatch, service: BatchService) -> bool:
        """Do what is due for a batch; returns whether it went well. What went wrong is tried again."""
        try:
            if batch.provider_id is None:
                self._recover(batch, service)
            elif not batch.wanted:
                self._drop(batch, batch.provider_id, service)
            else:
                self._collect(batch, batch.provider_id, service)
        except CotrailError as error:
            self._note(batch.key, batch.model_name, error)
            return False
        return True

    # Sending

    def _send_waiting(self, name: str, service: BatchService) -> None:
        with self._engine.begin() as connection:
            waiting = batches.read_waiting(connection, name)
            too_large = batches.smallest_too_large(connection, name)
            full = batches.full_seconds(connection, name)
            others = any(batch.model_name == name for batch in batches.read_open(connection))
        # An account that had no room for a batch has none for more before the others have ended.
        if waiting is None or (too_large is not None and others) or (full is not None and full < FULL_SECONDS):
            return
        most = service.most_lines if too_large is None else max(1, too_large // 2)
        is_whole = waiting.lines >= most or waiting.bytes >= service.most_bytes
        if not is_whole and waiting.more and waiting.seconds < batches.WAVE_SECONDS:
            return
        while not self._stopping.is_set():
            with self._engine.begin() as connection:
                key = batches.form(connection, name, self._sender, most, service.most_bytes)
            # Behind one that was too large, one at a time: its end says whether there is room for the next.
            if key is None or not self._try_to_send(key, name, service) or too_large is not None:
                return

    def _try_to_send(self, key: str, name: str, service: BatchService) -> bool:
        """Send a batch that this process has recorded; returns whether it was. What is in doubt is recovered later."""
        try:
            self._send(key, service)
        except (BlockedError, StepError) as error:
            logger.warning("a batch of %s is refused: %s", name, error)
            with self._engine.begin() as connection:
                batches.fail(connection, key, error)
            return False
        except CotrailError as error:
            self._note(key, name, error)
            return False
        return True

    def _send(self, key: str, service: BatchService) -> None:
        with self._engine.begin() as connection:
            lines = batches.read_lines(connection, key)
        if not lines:
            self._end(key)
            return

        def going() -> None:
            with self._engine.begin() as connection:
                if not batches.about_to_send(connection, key, self._sender, lines):
                    raise SupersededError(f"another process sends the batch {key}")

        provider_id = service.send(key, lines, going)
        with self._engine.begin() as connection:
            recorded = batches.sent(connection, key, self._sender, provider_id)
        if not recorded:
            # This process was away for so long that another one has sent the batch since.
            service.cancel(provider_id)
            raise SupersededError(f"another process has sent the batch {key}; {provider_id} is cancelled")
        logger.info("batch %s of %d requests is sent as %s", key, len(lines), provider_id)

    def _recover(self, batch: OpenBatch, service: BatchService) -> None:
        """Find a batch that may have been sent though nobody learned its id, and send it where it never turns up."""
        with self._engine.begin() as connection:
            # Before the search: a process that was about to send it now finds that it isn't the one to do so
            # (`about_to_send`).
            batches.take_over(connection, batch.key, self._sender)
            known = batches.known_ids(connection)
        since = batch.created_at - timedelta(seconds=CLOCK_SECONDS)
        found = service.find(batch.key, batch.lines, since, known) if batch.asked else None
        if found is None:
            if not batch.asked or self._is_missing(batch.key, SOUGHT):
                self._try_to_send(batch.key, batch.model_name, service)
            return
        logger.info("batch %s had been sent as %s", batch.key, found)
        with self._engine.begin() as connection:
            batches.sent(connection, batch.key, self._sender, found)

    # Collecting

    def _collect(self, batch: OpenBatch, provider_id: str, service: BatchService) -> None:
        try:
            status = service.status(provider_id)
            if status.state == "ended":
                self._take_answers(batch, provider_id, service, status)
                return
        except BatchLostError as error:
            self._missed(batch, str(error))
            return
        with self._engine.begin() as connection:
            if status.state == "running":
                batches.checked(connection, batch.key, status)
            elif status.too_large:
                batches.divide(connection, batch.key, status.message)
            else:
                said = status.message or "it doesn't say why"
                refused = (
                    f"the provider refused the batch {provider_id}: {said}; correct that, then `cotrail resume RUN`"
                )
                batches.fail(connection, batch.key, BlockedError(refused))

    def _take_answers(self, batch: OpenBatch, provider_id: str, service: BatchService, status: BatchStatus) -> None:
        seen: set[str] = set()
        lines = 0
        answers = service.answers(provider_id)
        while chunk := list(islice(answers, DELIVERED)):
            lines += len(chunk)
            seen.update(each.id for each in chunk)
            with self._engine.begin() as connection:
                batches.deliver(connection, batch.key, (each for each in chunk if isinstance(each, BatchAnswer)))
                batches.give_back(connection, batch.key, [each.id for each in chunk if isinstance(each, Unanswered)])
        # A provider may list answers late. What seems missing is asked for again before it counts as lost.
        if len(seen) < min(status.done, batch.lines):
            self._missed(batch, f"{provider_id} has {status.done} answers and gave {len(seen)}", seen=lines)
        else:
            self._end(batch.key, seen=lines)

    def _missed(self, batch: OpenBatch, problem: str, *, seen: int = 0) -> None:
        """Have lines asked again that the provider has long been missing; before, it is asked another time."""
        if self._is_missing(batch.key, problem):
            lost = (
                "the provider has lost these requests again, with a batch or as answers of one, and may have charged "
                f"for them: {problem}; ask the provider, then `cotrail resume RUN` sends them once more"
            )
            with self._engine.begin() as connection:
                batches.lose(connection, batch.key, BlockedError(lost), seen=seen)

    def _is_missing(self, key: str, problem: str) -> bool:
        """Note that a batch, or answers of it, aren't there; returns whether that has long been so."""
        with self._engine.begin() as connection:
            seconds = batches.missing(connection, key, problem)
        logger.warning("batch %s, for %.0f s: %s", key, seconds, problem)
        return seconds >= self._settings.batch_recovery_seconds

    def _drop(self, batch: OpenBatch, provider_id: str, service: BatchService) -> None:
        try:
            service.cancel(provider_id)
        except (StepError, BatchLostError) as error:  # it has ended, or is unknown
            logger.info("batch %s isn't cancelled: %s", batch.key, error)
        self._end(batch.key, problem="cancelled, as nobody needs its answers")

    def _end(self, key: str, *, seen: int = 0, problem: str | None = None) -> None:
        with self._engine.begin() as connection:
            batches.end(connection, key, seen=seen, problem=problem)
