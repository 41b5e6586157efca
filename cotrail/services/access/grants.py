"""What the one who asks may use in addition to what is their project's own.

The models that the one who asks may use. Others aren't there: errors name neither them nor their tables.

The corpora that the one who asks sees: their project's own, and what is granted to it.

Names of what several projects have of their own in one store, such as corpora: pure functions of names and grants.

What a project makes as NAME is stored as `PROJECT~NAME`, and what is made at the machine itself, or by the default
project, as NAME. No user's name has a `~`. What is stored without a project is shared: a project's grants say which of
it the project sees, all of it where they say nothing. What another project made is seen only if the grants name it, as
`PROJECT~NAME`.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from cotrail.configuration.files import corpora_of
from cotrail.configuration.settings import settings
from cotrail.core.ports.retriever import Corpus
from cotrail.core.questions import Paragraph
from cotrail.engines.engine_catalogue import NamedEngine
from cotrail.engines.engine_kinds import CATALOGUES, find_engine
from cotrail.engines.language_models.catalogue import ModelSpec, catalogue, find_model, unknown_model
from cotrail.engines.language_models.providers import provided
from cotrail.engines.retrieval.engine import CorpusStore, Extent, NewIndex
from cotrail.engines.retrieval.manifest import IndexManifest, checked_name, unknown
from cotrail.errors import ForbiddenError, InputError
from cotrail.models.queries.projects import read_grants
from cotrail.models.records.projects import BETWEEN
from cotrail.models.schema.states import DEFAULT_PROJECT
from cotrail.services.actor import actor
from cotrail.services.store import reading

GIVEN = "given-"  # begins the names of corpora that Python was given as paragraphs or files


def meant(names: Sequence[str]) -> Sequence[str]:
    """The corpora that one who names none may mean: of these, those that Python wasn't given, if there are any."""
    return [each for each in names if not each.startswith(GIVEN)] or names


class Grants(Struct, frozen=True, kw_only=True):
    """What a project may use in addition to its own; None: everything that is shared.

    project: None where everything is seen by the name under which it is stored.
    """

    project: str | None
    corpora: frozenset[str] | None = None
    models: frozenset[str] | None = None


ALL = Grants(project=None)


def stored_name(name: str, project: str | None) -> str:
    """The name under which something of a project's own is stored; raises InputError where it can't have this name."""
    if project is None:
        return name
    if BETWEEN in name:
        raise InputError(f"{name!r} can't be a name: {BETWEEN} stands between a project and its names; leave it out")
    return name if project == DEFAULT_PROJECT else f"{project}{BETWEEN}{name}"


def meant_by(name: str, project: str | None, granted: Collection[str] | None) -> tuple[str, ...]:
    """The stored names that a name may mean, the project's own first; those that it may not see aren't among them."""
    if project is None:
        return (name,)
    if BETWEEN in name:
        seen = seen_name(name, project, granted) is not None
        return (name,) if seen else ()
    own = () if project == DEFAULT_PROJECT else (stored_name(name, project),)
    shared = (name,) if project == DEFAULT_PROJECT or granted is None or name in granted else ()
    return (*own, *shared)


def seen_name(stored: str, project: str | None, granted: Collection[str] | None) -> str | None:
    """The name by which a project sees what is stored under this one; None where it doesn't see it."""
    owner, between, name = stored.rpartition(BETWEEN)
    if project is None:
        return stored
    if not between:
        return stored if project == DEFAULT_PROJECT or granted is None or stored in granted else None
    if owner == project:
        return name
    return stored if granted is not None and stored in granted else None


def is_own(stored: str, project: str | None) -> bool:
    """Whether what is stored under this name is the project's own, to change and to remove."""
    owner, between, _ = stored.rpartition(BETWEEN)
    return project is None or (owner if between else DEFAULT_PROJECT) == project


def grants() -> Grants:
    """What the project in whose name this thread works may use."""
    project = actor().project
    if project is None:
        return ALL
    with reading() as connection:
        granted = read_grants(connection, project)
    return Grants(project=project, **{kind: None if of is None else frozenset(of) for kind, of in granted.items()})


def find_granted_model(name: str) -> ModelSpec:
    """The language model of that name; raises UnknownNameError where there is none, or it isn't granted."""
    path, models = settings().catalogue_path, grants().models
    if models is None or (name in models and (name in catalogue(path) or provided(name) is not None)):
        return find_model(path, name)
    raise unknown_model(path, name, sorted(models & catalogue(path).keys()))


def find_granted_engine(kind: str, name: str | None) -> NamedEngine[Any]:
    """The engine of that kind and name, or the kind's default; raises UnknownNameError where it isn't granted."""
    path, models = settings().catalogue_path, grants().models
    known = CATALOGUES[kind].all(path)
    if models is None or name is None or (name in models and name in known):
        return find_engine(path, kind, name)
    raise CATALOGUES[kind].unknown(path, name, models & known.keys())


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

    def build(self, name: str, paragraphs: Iterable[Paragraph], new: NewIndex) -> IndexManifest:
        """Index paragraphs as a corpus of the project's own."""
        return self._store.build(self.own_name(name), paragraphs, new)

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
