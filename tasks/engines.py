"""The engines that a worker process has loaded, and those of one step among them."""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from importlib.resources import files
from string import Template
from threading import Lock
from typing import Any, Literal, Protocol, TypeVar, cast, runtime_checkable

from redis import BlockingConnectionPool, Redis, RedisError

from cotrail.configuration.files import corpora_of
from cotrail.configuration.settings import Settings
from cotrail.core.actions.kind import Splitter
from cotrail.core.binding import MODEL, Binding
from cotrail.core.ports.cancellation import Cancellation, Interrupted
from cotrail.core.ports.language_model import LanguageModel, Profile
from cotrail.core.ports.rate_limiter import Limits, Need
from cotrail.core.ports.retriever import Corpus, Knowledge, Source
from cotrail.core.ports.role import BatchedRole, RequestT, ResultT
from cotrail.core.replay import SystemBrokenError
from cotrail.engines import rate_limits
from cotrail.engines.engine_kinds import find_engine
from cotrail.engines.knowledge.store import KnowledgeStore
from cotrail.engines.language_models.catalogue import find_model, open_model
from cotrail.engines.language_models.sentence_splitters import open_pipeline
from cotrail.engines.rate_limits import ProcessLimiter
from cotrail.errors import BlockedError, BusyError, CorpusChangedError, ModelChangedError, UnavailableError
from cotrail.models.records.runs import RunPlan
from cotrail.tasks.micro_batching import MicroBatcher, batched

# Limits of providers, shared by all processes on all machines through Redis.

SCRIPT = Template(files("cotrail.tasks").joinpath("shared_limits.lua").read_text()).substitute(vars(rate_limits))
"""The pools of `cotrail.engines.rate_limits.pools` in Redis."""

logger = logging.getLogger(__name__)

PREFIX = "cotrail-limits:"
"""Beginning of the keys in Redis."""

PATIENCE_SECONDS = 2.0
"""How long Redis may take to answer."""

CONNECTIONS, TURN_SECONDS = 8, 30.0
"""Connections to Redis of a process, which its threads share, and how long one of them may wait for its turn: hundreds
may ask at once, and none takes long."""

AWAY_SECONDS = 10.0
"""How long Redis isn't asked again after it didn't answer."""

_NO_LIMITS, _NO_NEED = Limits(), Need(requests=0)

Operation = Literal["reserve", "line_up", "leave", "settle", "tell", "refused", "plan", "pause"]


class SharedLimiter:
    """See `RateLimiter`. Without Redis each process keeps limits of its own, as everything here is soft.

    url: of Redis; asking_now: how many threads ask hosted models.
    """

    def __init__(self, url: str) -> None:
        # Celery has a name of its own for Unix sockets.
        url = url.replace("redis+socket://", "unix://", 1)
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=CONNECTIONS,
            timeout=TURN_SECONDS,
            socket_timeout=PATIENCE_SECONDS,
            socket_connect_timeout=PATIENCE_SECONDS,
        )
        self._script = Redis(connection_pool=pool).register_script(SCRIPT)
        self._own = ProcessLimiter()
        self._away_until = 0.0
        self._lock = Lock()
        self.asking_now = 0

    @contextmanager
    def asking(self) -> Iterator[None]:
        with self._lock:
            self.asking_now += 1
        try:
            yield
        finally:
            with self._lock:
                self.asking_now -= 1

    def reserve(self, pool: str, need: Need, limits: Limits, longest: float) -> float:
        wait = self._ask("reserve", pool, limits, need, longest)
        return self._own.reserve(pool, need, limits, longest) if wait is None else wait

    def line_up(self, pool: str, need: Need, limits: Limits) -> float:
        wait = self._ask("line_up", pool, limits, need)
        return self._own.line_up(pool, need, limits) if wait is None else wait

    def leave(self, pool: str, plan: int, limits: Limits) -> float:
        wait = self._ask("leave", pool, limits, last=plan)
        return self._own.leave(pool, plan, limits) if wait is None else wait

    def settle(self, pool: str, more: Need, limits: Limits) -> None:
        if self._ask("settle", pool, limits, more) is None:
            self._own.settle(pool, more, limits)

    def tell(self, pool: str, limits: Limits, age: float) -> None:
        # To both: once Redis is away, this process goes by its own pools, which must know the limits by then.
        self._ask("tell", pool, limits, last=age)
        self._own.tell(pool, limits, age)

    def refused(self, pool: str, seconds: float | None) -> None:
        self._ask("refused", pool, last=-1.0 if seconds is None else seconds)
        self._own.refused(pool, seconds)

    def plan(self, pool: str) -> int:
        plan = self._ask("plan", pool)
        return self._own.plan(pool) if plan is None else int(plan)

    def pause(self, pool: str) -> float:
        wait = self._ask("pause", pool)
        return self._own.pause(pool) if wait is None else wait

    def _ask(
        self, what: Operation, pool: str, limits: Limits = _NO_LIMITS, need: Need = _NO_NEED, last: float = 0.0
    ) -> float | None:
        """The script's answer; None where Redis doesn't answer."""
        if time.monotonic() < self._away_until:
            return None
        try:
            return float(self._script([f"{PREFIX}{pool}"], [what, *limits.values, *need.values, last]))
        except RedisError as error:
            # Otherwise each of hundreds of threads would wait for the timeout with every request that it sends.
            self._away_until = time.monotonic() + AWAY_SECONDS
            logger.warning("Redis doesn't answer, so that this process keeps to limits of its own: %s", error)
            return None


Opened = TypeVar("Opened")


@runtime_checkable
class Interruptible(Protocol):
    """An engine whose work can be cut off."""

    def interrupt(self) -> None:
        """Ends all work, now and from now on, with Interrupted."""


class LoadedEngines:
    """The engines of one process, shared by its threads; each is opened once, when it is first needed.

    The caller names a run, and gets the engine that the run pins or an error: ModelChangedError or
    CorpusChangedError where this worker's is another one, UnknownNameError, NotInstalledError.
    limiter: for a process alone; without it limits are shared with the other workers.
    """

    def __init__(self, settings: Settings, limiter: ProcessLimiter | None = None) -> None:
        self._settings = settings
        self._limiter = limiter or SharedLimiter(settings.broker)
        self._store = KnowledgeStore(settings.knowledge_path)
        # Engines are opened under a lock, since a second copy of a model might not fit into memory. Evidence has a
        # lock of its own, which is taken first: opening an entailer may open the language model that it asks. So have
        # served models: one that computes may take minutes to load.
        self._opening = threading.Lock()
        self._opening_served = threading.Lock()
        # Reentrant, as opening a role's batcher opens the role's engine within it (`_once`).
        self._opening_evidence = threading.RLock()
        self._language_models: dict[tuple[str, str], LanguageModel] = {}
        self._retrievers: dict[str, Corpus] = {}
        self._evidence: dict[Hashable, Any] = {}

    @property
    def hosted(self) -> int:
        """The number of steps that wait for a hosted model, or for their turn to ask it."""
        return self._limiter.asking_now if isinstance(self._limiter, SharedLimiter) else 0

    def load(self, name: str, profile: str) -> LanguageModel:
        """The language model of that name in a serving profile; raises UnknownNameError."""
        if (name, profile) not in self._language_models:
            spec = find_model(self._settings.catalogue_path, name)
            # Looked up before the lock too: it may be held for minutes while another model is loaded.
            with self._opening_served if spec.engine.served else self._opening:
                if (name, profile) not in self._language_models:
                    slots = self._settings.generation_slots
                    self._language_models[name, profile] = open_model(
                        spec, cast(Profile, profile), slots, self._limiter
                    )
        return self._language_models[name, profile]

    def language_model(self, run: RunPlan, role: str = MODEL) -> LanguageModel:
        """The language model that the run has for a role."""
        model = self.load(run.engine_name(role), run.binding.profile)
        # For each run, not only as it is loaded: runs may pin former files of a model of the same name.
        check_model(model.identity, run.binding.engine(role))
        return model

    def retriever(self, run: RunPlan, corpus: str = "") -> Corpus:
        """The run's corpus of that name, or its first one; raises UnavailableError too."""
        name, pinned = run.binding.corpus(corpus)
        with self._opening:
            # One that was indexed again since it was opened may by now be what this run pins: it is opened again.
            if name not in self._retrievers or self._retrievers[name].revision != pinned:
                self._retrievers[name] = corpora_of(self._settings).open(name)
            retriever = self._retrievers[name]
        if retriever.revision != pinned:
            raise CorpusChangedError(
                f"the corpus {name!r} was indexed again since the run was submitted (then {pinned}, "
                f"now {retriever.revision}); index the former files again, then `cotrail resume RUN`"
            )
        return retriever

    def forget_retrievers(self, run: RunPlan) -> None:
        """Has the run's corpora opened again by the next search: after a panic their library's locks may be broken."""
        with self._opening:
            for name in run.binding.corpora:
                self._retrievers.pop(name, None)

    def engine(self, run: RunPlan, role: BatchedRole[Any, RequestT, ResultT]) -> MicroBatcher[RequestT, ResultT]:
        """The engine that the run has for a role; what threads hand in while it works is its next batch."""
        pinned, profile = run.binding.engine(role.name), cast(Profile, run.binding.profile)
        # With the identity, so that an engine whose files were replaced is opened again for the runs that pin the new
        # ones.
        which = (role.kind, run.engine_name(role.name), pinned, profile)

        def open_() -> Any:
            entry = find_engine(self._settings.catalogue_path, role.kind, run.engine_name(role.name))
            engine = entry.open(profile, lambda: self.language_model(run), self._limiter)
            check_model(engine.identity, pinned)
            return engine

        # Roles that have the same engine share it, and each has batches of its own.
        return self._once(
            (role.name, *which),
            lambda: MicroBatcher(
                role.name, partial(role.carry_out, self._once(which, open_)), concerns_all=_concerns_engine
            ),
        )

    def knowledge(self, run: RunPlan, source: Source) -> Knowledge:
        """A knowledge source as the run was submitted with it."""

        def open_() -> Knowledge:
            knowledge = self._store.open(source)
            if knowledge.revision != run.binding.pins.get(source):
                raise CorpusChangedError(
                    f"the knowledge source {source} was built again since the run was submitted; build it from the "
                    "former files again, then `cotrail resume RUN`"
                )
            return knowledge

        return self._once(("knowledge", source, run.binding.pins.get(source)), open_)

    def interrupt(self) -> None:
        """Cuts off what the language models are writing, and what other engines ask servers for."""
        # Without the lock: a model that is just being opened may take minutes, and a shutdown doesn't wait for it.
        # `list` copies the dictionary in one step under the GIL.
        held = (self._language_models, self._retrievers, self._evidence)
        for engine in [each for kind in held for each in list(kind.values())]:
            if isinstance(engine, Interruptible):
                engine.interrupt()

    def close(self) -> None:
        """Frees all engines; none may be in use."""
        self._language_models.clear()
        self._evidence.clear()

    def _once(self, key: Hashable, open_: Callable[[], Opened]) -> Opened:
        with self._opening_evidence:
            if key not in self._evidence:
                self._evidence[key] = open_()
            return cast(Opened, self._evidence[key])


class StepEngines:
    """The engines of one step: those that its run pins (see `cotrail.core.actions.kind.Engines`).

    answers: reads those of batches to the step's requests, once a language model is asked; None where these are asked
        at once.
    """

    def __init__(
        self,
        loaded: LoadedEngines,
        run: RunPlan,
        cancellation: Cancellation,
        answers: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        self._read_answers = answers
        self._loaded = loaded
        self._run = run
        self.binding: Binding = run.binding
        self.cancellation = cancellation

    def language_model(self, role: str = MODEL) -> LanguageModel:
        self._check_role(role)
        model = self._loaded.language_model(self._run, role)
        if self._read_answers is None:
            return model
        return batched(model, self._run.engine_name(role), self._answers)

    @cached_property
    def _answers(self) -> Iterator[str]:
        """One for all of the step's models, which take their answers in the order in which they ask."""
        return iter(self._read_answers() if self._read_answers else ())

    def splitter(self, name: str) -> Splitter:
        """See `Engines`; raises NotInstalledError, ModelChangedError, InputError."""
        return open_pipeline(name)

    def retriever(self, corpus: str = "") -> Corpus:
        name, pinned = self.binding.corpus(corpus)
        if self.binding.corpora and not pinned:
            raise SystemBrokenError(
                f"the system searches the corpus {name!r}, and the run has only {', '.join(self.binding.corpora)}: "
                "submit it again with that one too"
            )
        check_declared("corpus=True", pinned)
        return self._loaded.retriever(self._run, corpus)

    def knowledge(self, source: Source) -> Knowledge:
        check_declared(f'knowledge=("{source}",)', self.binding.pins.get(source))
        return self._loaded.knowledge(self._run, source)

    def ask(self, role: BatchedRole[Any, RequestT, ResultT], request: RequestT) -> ResultT:
        self._check_role(role.name)
        return self._loaded.engine(self._run, role).do(request)

    def _check_role(self, role: str) -> None:
        check_declared(f"engines=({role.upper()},)", self.binding.engine(role))


def check_declared(need: str, pinned: str | None) -> None:
    """Raises SystemBrokenError where a run pins nothing for what a step needs, since its system declares no such need.

    need: as it would be declared.
    """
    if not pinned:
        raise SystemBrokenError(
            f"the system asks for what its `Needs` don't declare, so that the run pins no engine for it: add {need}, "
            "restart the workers and submit the run again"
        )


def check_model(revision: str, pinned: str) -> None:
    """Raises ModelChangedError where a worker's model isn't the one that a run was submitted with."""
    if revision != pinned:
        raise ModelChangedError(
            f"the run was submitted with the model {pinned}, and this worker has {revision}; put the former file back, "
            "then `cotrail resume RUN`"
        )


def _concerns_engine(error: BaseException) -> bool:
    """Whether an error is about the engine, and not about one of the requests in its batch.

    Where its account is busy, some of them may have been answered: these end when each is tried alone.
    """
    return isinstance(error, BlockedError | UnavailableError | Interrupted) and not isinstance(error, BusyError)
