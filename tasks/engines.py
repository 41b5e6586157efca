"""The engines that a worker process has loaded, and those of one step among them."""

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from cotrail.configuration.corpora import corpora_of
from cotrail.configuration.settings import Settings
from cotrail.core.actions.kind import Splitter
from cotrail.core.binding import Binding, PinnedRole
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.ports.embedder import Comparison
from cotrail.core.ports.entailer import EntailmentPair
from cotrail.core.ports.extractor import Extraction
from cotrail.core.ports.knowledge import Knowledge, Source
from cotrail.core.ports.language_model import LanguageModel, Profile
from cotrail.core.ports.rater import ROLES, By, Rating
from cotrail.core.ports.retriever import Corpus
from cotrail.core.replay import SystemBrokenError
from cotrail.core.results import Embedded, Entailed, Extracted, Rated
from cotrail.engines.embedding.catalogue import find_embedder
from cotrail.engines.entailment.catalogue import find_entailer
from cotrail.engines.extraction.catalogue import find_extractor
from cotrail.engines.knowledge.store import KnowledgeStore
from cotrail.engines.language_models.catalogue import find_model, open_model
from cotrail.engines.language_models.sentence_splitters import open_pipeline
from cotrail.engines.model_identity import is_pinned
from cotrail.engines.rating.catalogue import find_rater
from cotrail.errors import CorpusChangedError, ModelChangedError
from cotrail.models.records.runs import RunPlan
from cotrail.tasks.micro_batching import MicroBatcher

Opened = TypeVar("Opened")


class LoadedEngines:
    """The engines of one process, shared by its threads; each is opened once, when it is first needed.

    The caller names a run, and gets the engine that the run pins or an error: ModelChangedError or
    CorpusChangedError where this worker's is another one, UnknownNameError, NotInstalledError.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._store = KnowledgeStore(settings.knowledge_path)
        # Engines are opened under a lock, since a second copy of a model might not fit into memory. Evidence has a
        # lock of its own, which is taken first: opening an entailer may open the language model that it asks. So have
        # served models: one that computes may take minutes to load.
        self._opening = threading.Lock()
        self._opening_served = threading.Lock()
        self._opening_evidence = threading.Lock()
        self._language_models: dict[tuple[str, str], LanguageModel] = {}
        self._retrievers: dict[str, Corpus] = {}
        self._evidence: dict[Hashable, Any] = {}

    def load(self, name: str, profile: str) -> LanguageModel:
        """The language model of that name in a serving profile; raises UnknownNameError."""
        if (name, profile) not in self._language_models:
            spec = find_model(self._settings.catalogue_path, name)
            with self._opening_served if spec.engine.served else self._opening:
                if (name, profile) not in self._language_models:
                    slots = self._settings.generation_slots
                    self._language_models[name, profile] = open_model(spec, cast(Profile, profile), slots)
        return self._language_models[name, profile]

    def language_model(self, run: RunPlan) -> LanguageModel:
        """The run's language model."""
        model = self.load(run.model_name, run.binding.profile)
        check_model(model.identity, run.binding.model)
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
                f"the corpus {name!r} was indexed anew since the run was submitted (then {pinned}, "
                f"now {retriever.revision}); index the former files again, then `cotrail resume RUN`"
            )
        return retriever

    def forget_retrievers(self, run: RunPlan) -> None:
        """Has the run's corpora opened again by the next search: after a panic their library's locks may be broken."""
        with self._opening:
            for name in run.binding.corpora:
                self._retrievers.pop(name, None)

    def embedder(self, run: RunPlan) -> MicroBatcher[Comparison, Embedded]:
        """The run's embedder; what threads hand in while it works is its next batch."""

        def open_() -> MicroBatcher[Comparison, Embedded]:
            embedder = find_embedder(self._settings.catalogue_path, run.embedder_name).open(_profile(run))
            check_model(embedder.identity, run.binding.embedder)
            return MicroBatcher("embedder", embedder.compare)

        return self._once(("embedder", run.embedder_name, run.binding.embedder, run.binding.profile), open_)

    def entailer(self, run: RunPlan) -> MicroBatcher[EntailmentPair, Entailed]:
        """The run's entailer; what threads hand in while it works is its next batch."""

        def open_() -> MicroBatcher[EntailmentPair, Entailed]:
            found = find_entailer(self._settings.catalogue_path, run.entailer_name)
            entailer = found.open(_profile(run), lambda: self.language_model(run))
            check_model(entailer.identity, run.binding.entailer)
            return MicroBatcher("entailer", entailer.judge)

        return self._once(("entailer", run.entailer_name, run.binding.entailer, run.binding.profile), open_)

    def extractor(self, run: RunPlan) -> MicroBatcher[Extraction, Extracted]:
        """The run's extractor; what threads hand in while it works is its next batch."""

        def open_(name: str, pinned: str) -> MicroBatcher[Extraction, Extracted]:
            extractor = find_extractor(self._settings.catalogue_path, name).open(_profile(run))
            check_model(extractor.identity, pinned)
            return MicroBatcher("extractor", extractor.extract)

        return self._pinned_for(run, "extractor", open_)

    def rater(self, run: RunPlan, role: PinnedRole) -> MicroBatcher[Rating, Rated]:
        """The run's rater of that role; what threads hand in while it works is its next batch."""

        def open_(name: str, pinned: str) -> MicroBatcher[Rating, Rated]:
            rater = find_rater(self._settings.catalogue_path, name).open(_profile(run))
            check_model(rater.identity, pinned)
            return MicroBatcher(role, rater.rate)

        return self._pinned_for(run, role, open_)

    def knowledge(self, run: RunPlan, source: Source) -> Knowledge:
        """A knowledge source as the run was submitted with it."""

        def open_() -> Knowledge:
            knowledge = self._store.open(source)
            if knowledge.revision != run.binding.pins.get(source):
                raise CorpusChangedError(
                    f"the knowledge source {source} was built anew since the run was submitted; build it from the "
                    "former files again, then `cotrail resume RUN`"
                )
            return knowledge

        return self._once(("knowledge", source, run.binding.pins.get(source)), open_)

    def interrupt(self) -> None:
        """Cuts off what the language models are writing."""
        # Without the lock: a model that is just being opened may take minutes, and a shutdown doesn't wait for it.
        # `list` copies the dictionary in one step under the GIL.
        for model in list(self._language_models.values()):
            model.interrupt()

    def close(self) -> None:
        """Frees all engines; none may be in use."""
        self._language_models.clear()
        self._evidence.clear()

    def _pinned_for(self, run: RunPlan, role: PinnedRole, open_: Callable[[str, str], Opened]) -> Opened:
        """The engine that a run pins for a role, by its name and identity."""
        name, pinned = run.binding.name_of(role), run.binding.pins.get(role, "")
        return self._once((role, pinned, run.binding.profile), lambda: open_(name, pinned))

    def _once(self, key: Hashable, open_: Callable[[], Opened]) -> Opened:
        with self._opening_evidence:
            if key not in self._evidence:
                self._evidence[key] = open_()
            return cast(Opened, self._evidence[key])


class StepEngines:
    """The engines of one step: those that its run pins (see `cotrail.core.actions.kind.Engines`)."""

    def __init__(self, loaded: LoadedEngines, run: RunPlan, cancellation: Cancellation) -> None:
        self._loaded = loaded
        self._run = run
        self._cancellation = cancellation

    @property
    def binding(self) -> Binding:
        """See `Engines`."""
        return self._run.binding

    @property
    def cancellation(self) -> Cancellation:
        """See `Engines`."""
        return self._cancellation

    def language_model(self) -> LanguageModel:
        """See `Engines`."""
        return self._loaded.language_model(self._run)

    def splitter(self, name: str) -> Splitter:
        """See `Engines`; raises NotInstalledError, ModelChangedError, InputError."""
        return open_pipeline(name)

    def retriever(self, corpus: str = "") -> Corpus:
        """See `Engines`."""
        name, pinned = self.binding.corpus(corpus)
        if self.binding.corpora and not pinned:
            raise SystemBrokenError(
                f"the system searches the corpus {name!r}, and the run has only {', '.join(self.binding.corpora)}: "
                "submit it again with that one too"
            )
        check_declared("corpus=True", pinned)
        return self._loaded.retriever(self._run, corpus)

    def knowledge(self, source: Source) -> Knowledge:
        """See `Engines`."""
        check_declared(f'knowledge=("{source}",)', self.binding.pins.get(source))
        return self._loaded.knowledge(self._run, source)

    def compare(self, comparison: Comparison) -> Embedded:
        """See `Engines`."""
        check_declared("weighs=True", self.binding.embedder)
        return self._loaded.embedder(self._run).do(comparison)

    def judge(self, pair: EntailmentPair) -> Entailed:
        """See `Engines`."""
        check_declared("weighs=True", self.binding.entailer)
        return self._loaded.entailer(self._run).do(pair)

    def extract(self, extraction: Extraction) -> Extracted:
        """See `Engines`."""
        check_declared("extracts=True", self.binding.pins.get("extractor"))
        return self._loaded.extractor(self._run).do(extraction)

    def rate(self, by: By, rating: Rating) -> Rated:
        """See `Engines`."""
        check_declared(f'rates=frozenset({{"{by}"}})', self.binding.pins.get(ROLES[by]))
        return self._loaded.rater(self._run, ROLES[by]).do(rating)


def check_declared(need: str, pinned: str | None) -> None:
    """Raises SystemBrokenError where a run pins nothing for what a step needs, since its system declares no such need.

    need: as it would be declared.
    """
    if not pinned:
        raise SystemBrokenError(
            f"the system asks for what its `Needs` don't declare, so that the run pins no engine for it: add {need}, "
            "restart the workers and submit the run again"
        )


def check_model(found: str, pinned: str) -> None:
    """Raises ModelChangedError where a worker's model isn't the one that a run was submitted with."""
    if not is_pinned(found, pinned):
        raise ModelChangedError(
            f"the run was submitted with the model {pinned}, and this worker has {found}; put the former file back, "
            "then `cotrail resume RUN`"
        )


def _profile(run: RunPlan) -> Profile:
    return cast(Profile, run.binding.profile)
