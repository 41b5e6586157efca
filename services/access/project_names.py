"""Names of what several projects have of their own in one store, such as corpora: pure functions of names and grants.

What a project makes as NAME is stored as `PROJECT~NAME`, and what is made at the machine itself, or by the default
project, as NAME. No user's name has a `~`. What is stored without a project is shared: a project's grants say which of
it the project sees, all of it where they say nothing. What another project made is seen only if the grants name it, as
`PROJECT~NAME`.
"""

from collections.abc import Collection

from msgspec import Struct

from cotrail.errors import InputError
from cotrail.models.records.projects import BETWEEN
from cotrail.models.schema.states import DEFAULT_PROJECT


class Grants(Struct, frozen=True, kw_only=True):
    """What a project may use beside its own; None: everything that is shared.

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
