"""What a worker process compares sentences with, and the knowledge that it asks."""

import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar, cast

from cotrail.core.actions.embed import Embed
from cotrail.core.actions.entail import Entail
from cotrail.core.ports.knowledge import Knowledge, Source
from cotrail.core.ports.language_model import Generator, Profile
from cotrail.core.results import Embedded, Entailed
from cotrail.engines.embedding.catalogue import find_embedder
from cotrail.engines.entailment.catalogue import find_entailer
from cotrail.engines.identity import is_pinned
from cotrail.engines.knowledge.store import KnowledgeStore
from cotrail.errors import CorpusChangedError, ModelChangedError
from models.records.runs import RunPlan
from tasks.micro_batching import MicroBatcher

Opened = TypeVar("Opened")


class EvidenceEngines:
    """One a process; each model and source is opened once, when it is first needed.

    What threads hand to a model while it works is its next batch.
    catalogue: the file that lists a person's models; knowledge: the folder of what was built; generator: a run's
    language model, for an entailer that asks it.
    """

    def __init__(self, catalogue: Path, knowledge: Path, generator: Callable[[RunPlan], Generator]) -> None:
        self._catalogue = catalogue
        self._store = KnowledgeStore(knowledge)
        self._generator = generator
        self._opening = threading.Lock()
        self._opened: dict[Hashable, Any] = {}

    def embedder(self, run: RunPlan) -> MicroBatcher[Embed, Embedded]:
        """What compares the run's sentences; raises ModelChangedError, UnknownNameError, NotInstalledError."""

        def open_() -> MicroBatcher[Embed, Embedded]:
            embedder = find_embedder(self._catalogue, run.embedder_name).open(cast(Profile, run.binding.profile))
            check_model(embedder.identity, run.binding.embedder)
            return MicroBatcher("embedder", embedder.compare)

        return self._once(("embedder", run.embedder_name, run.binding.embedder, run.binding.profile), open_)

    def entailer(self, run: RunPlan) -> MicroBatcher[Entail, Entailed]:
        """What judges the run's sentences; raises ModelChangedError, UnknownNameError, NotInstalledError."""

        def open_() -> MicroBatcher[Entail, Entailed]:
            profile = cast(Profile, run.binding.profile)
            entailer = find_entailer(self._catalogue, run.entailer_name).open(profile, lambda: self._generator(run))
            check_model(entailer.identity, run.binding.entailer)
            return MicroBatcher("entailer", entailer.judge)

        return self._once(("entailer", run.entailer_name, run.binding.entailer, run.binding.profile), open_)

    def knowledge(self, run: RunPlan, source: Source) -> Knowledge:
        """A source as the run was submitted with it; raises CorpusChangedError, UnknownNameError."""

        def open_() -> Knowledge:
            knowledge = self._store.open(source)
            if knowledge.revision != run.binding.knowledge.get(source):
                raise CorpusChangedError(
                    f"the knowledge source {source} was built anew since the run was submitted; build it from the "
                    "former files again, then `cotrail resume RUN`"
                )
            return knowledge

        return self._once(("knowledge", source, run.binding.knowledge.get(source)), open_)

    def close(self) -> None:
        """Frees what was opened."""
        self._opened.clear()

    def _once(self, key: Hashable, open_: Callable[[], Opened]) -> Opened:
        with self._opening:
            if key not in self._opened:
                self._opened[key] = open_()
            return cast(Opened, self._opened[key])


def check_model(found: str, pinned: str) -> None:
    """Raises ModelChangedError where a worker's model isn't the one that a run was submitted with."""
    if not is_pinned(found, pinned):
        raise ModelChangedError(
            f"the run was submitted with the model {pinned}, and this worker has {found}; put the former file back, "
            "then `cotrail resume RUN`"
        )
