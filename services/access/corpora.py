"""The corpora that the one who asks sees: their project's own, and what is granted to it."""

from collections.abc import Iterable
from functools import cached_property

from cotrail.configuration.corpora import corpora_of
from cotrail.configuration.settings import settings
from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.retriever import Corpus
from cotrail.engines.retrieval.corpus_store import CorpusStore, CountCallback, Extent, NewIndex
from cotrail.engines.retrieval.index_manifest import IndexManifest
from cotrail.engines.retrieval.manifest import checked_name, unknown
from cotrail.errors import ForbiddenError
from cotrail.services.access.grants import grants
from cotrail.services.access.project_names import Grants, is_own, meant_by, seen_name, stored_name


class SeenCorpora:
    """The corpora that a project sees, by the names by which it does; each method raises UnknownNameError."""

    def __init__(self, store: CorpusStore, given: Grants) -> None:
        self._store = store
        self._given = given

    @cached_property
    def _stored(self) -> dict[str, IndexManifest]:
        return self._store.manifests()

    def stored(self, name: str) -> str:
        """The name under which a corpus is stored; runs pin it by this one."""
        candidates = meant_by(name, self._given.project, self._given.corpora)
        if self._given.project is None:
            return name
        if found := next((each for each in candidates if each in self._stored), None):
            return found
        raise unknown(name, self.manifests())

    def open(self, name: str) -> Corpus:
        """The corpus of that name."""
        return self._store.open(self.stored(name))

    def manifests(self) -> dict[str, IndexManifest]:
        """The corpora that are seen, by the names by which they are."""
        own_last = sorted(self._stored.items(), key=lambda each: is_own(each[0], self._given.project))
        named = ((seen_name(stored, self._given.project, self._given.corpora), each) for stored, each in own_last)
        seen = {name: manifest for name, manifest in named if name is not None}
        return {name: seen[name] for name in sorted(seen)}

    def extent(self, name: str) -> Extent:
        """The size and the age of a corpus."""
        return self._store.extent(self.stored(name))

    def build(
        self, name: str, paragraphs: Iterable[Paragraph], progress: CountCallback, new: NewIndex
    ) -> IndexManifest:
        """Index paragraphs as a corpus of the project's own."""
        return self._store.build(self.own_name(name), paragraphs, progress, new)

    def own_name(self, name: str) -> str:
        """The name under which a corpus of the project's own is stored; raises InputError where it can't have it."""
        return checked_name(stored_name(name, self._given.project))

    def remove(self, name: str) -> None:
        """Remove a corpus of the project's own; raises ForbiddenError for one that is shared."""
        stored = self.stored(name)
        if not is_own(stored, self._given.project):
            raise ForbiddenError(f"the corpus {name!r} isn't your project's own, and stays")
        self._store.remove(stored)


def seen_corpora() -> SeenCorpora:
    """The corpora that the one who asks sees."""
    return SeenCorpora(corpora_of(settings()), grants())
