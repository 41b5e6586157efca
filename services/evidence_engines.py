"""The embedder, the entailer and the knowledge sources that weigh a run's evidence, pinned at submission."""

from msgspec import Struct

from configuration.settings import settings
from cotrail.engines.embedding.catalogue import find_embedder
from cotrail.engines.entailment.catalogue import find_entailer
from cotrail.engines.knowledge.store import KnowledgeStore
from cotrail.errors import InputError
from cotrail.systems.spec import Needs
from services.requests import RunRequest


class EvidenceEngines(Struct, frozen=True, kw_only=True):
    """Names and identities of the models that compare sentences; each knowledge source's revision.

    notes: where a model stands in for the paper's, and why.
    """

    embedder_name: str = ""
    embedder: str = ""
    entailer_name: str = ""
    entailer: str = ""
    knowledge: dict[str, str] = {}
    notes: tuple[str, ...] = ()


def choose_evidence_engines(needs: Needs, request: RunRequest, model: str) -> EvidenceEngines:
    """Those that the request names, or the default ones; empty where the system needs none.

    model: the identity of the run's language model. Raises InputError and its kinds, NotInstalledError.
    """
    store = KnowledgeStore(settings().knowledge_path)
    knowledge: dict[str, str] = {source: store.revision(source) for source in needs.knowledge}
    if not needs.weighs:
        if request.embedder or request.entailer:
            raise InputError(f"the system {request.system} compares no sentences: name no embedder and no entailer")
        return EvidenceEngines(knowledge=knowledge)
    embedder = find_embedder(settings().catalogue_path, request.embedder)
    entailer = find_entailer(settings().catalogue_path, request.entailer)
    return EvidenceEngines(
        embedder_name=embedder.name,
        embedder=embedder.identity(),
        entailer_name=entailer.name,
        entailer=entailer.identity(model),
        knowledge=knowledge,
        notes=tuple(note for note in (embedder.instead, entailer.instead) if note),
    )
