"""The engines that a worker process has loaded, and those of one step among them."""

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from cotrail.configuration.files import corpora_of
from cotrail.configuration.settings import Settings
from cotrail.core.actions.kind import Splitter
from cotrail.core.binding import MODEL, Binding
from cotrail.core.ports.cancellation import Cancellation, Interrupted
from cotrail.core.ports.language_model import LanguageModel, Profile
from cotrail.core.ports.retriever import Corpus, Knowledge, Source
from cotrail.core.ports.role import BatchedRole, RequestT, ResultT
from cotrail.core.replay import SystemBrokenError
from cotrail.engines.engine_kinds import find_engine
from cotrail.engines.knowledge.store import KnowledgeStore
from cotrail.engines.language_models.catalogue import find_model, open_model
from cotrail.engines.language_models.sentence_splitters import open_pipeline
from cotrail.engines.rate_limits import ProcessLimiter
from cotrail.errors import BlockedError, BusyError, CorpusChangedError, ModelChangedError, UnavailableError
from cotrail.models.records.runs import RunPlan
from cotrail.tasks.micro_batching import MicroBatcher, batched
from cotrail.tasks.shared_limits import SharedLimiter

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
        self._cancellation = cancellation

    @property
    def binding(self) -> Binding:
        return self._run.binding

    @property
    def cancellation(self) -> Cancellation:
        return self._cancellation

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
