"""The models that compare sentences and the knowledge that is asked, as a run is submitted with them."""

from typing import TYPE_CHECKING

from msgspec import Struct

from configuration.settings import settings
from cotrail.engines.embedding.catalogue import find_embedder
from cotrail.engines.entailment.catalogue import find_entailer
from cotrail.engines.knowledge.store import KnowledgeStore
from cotrail.errors import InputError
from cotrail.systems.needs import Needs

if TYPE_CHECKING:
    from services.requests import RunRequest


class Weighers(Struct, frozen=True, kw_only=True):
    """What weighs a run's evidence: names, identities, each knowledge source's revision.

    notes: where something serves in another's place, and why.
    """

    embedder_name: str = ""
    embedder: str = ""
    entailer_name: str = ""
    entailer: str = ""
    knowledge: dict[str, str] = {}
    notes: tuple[str, ...] = ()


def choose_weighers(needs: Needs, request: "RunRequest", model: str) -> Weighers:
    """What the request names, or the default ones; nothing where the system needs none.

    model: the identity of the run's language model. Raises InputError and its kinds, NotInstalledError.
    """
    store = KnowledgeStore(settings().knowledge_path)
    knowledge: dict[str, str] = {source: store.revision(source) for source in needs.knowledge}
    if not needs.weighs:
        if request.embedder or request.entailer:
            raise InputError(f"the system {request.system} compares no sentences: name no embedder and no entailer")
        return Weighers(knowledge=knowledge)
    embedder = find_embedder(settings().catalogue_path, request.embedder)
    entailer = find_entailer(settings().catalogue_path, request.entailer)
    return Weighers(
        embedder_name=embedder.name,
        embedder=embedder.identity(),
        entailer_name=entailer.name,
        entailer=entailer.identity(model),
        knowledge=knowledge,
        notes=tuple(note for note in (embedder.instead, entailer.instead) if note),
    )
