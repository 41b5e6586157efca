"""Projects: made, listed and changed, and what each may use.

Administrators of the default project are those of the service: they make projects, say what these may use, and make
tokens of all. Administrators of another project make tokens of it, and nothing else.
"""

import re
from decimal import Decimal
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from cotrail.errors import ConflictError, ForbiddenError, InputError, UnknownNameError
from cotrail.models.commands import projects as commands
from cotrail.models.queries import projects as queries
from cotrail.models.queries.projects import ProjectRecord as ProjectRecord
from cotrail.models.schema.states import DEFAULT_PROJECT
from cotrail.services.access.actor import actor
from cotrail.services.store import open_store

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")

Name = Annotated[str, Meta(min_length=1, max_length=200)]

MOST = 2**53


class Changes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be changed of a project; null allows everything (see `ProjectRecord`)."""

    corpora: tuple[Name, ...] | UnsetType | None = UNSET
    models: tuple[Name, ...] | UnsetType | None = UNSET
    open_questions: Annotated[int, Meta(ge=0, le=MOST)] | UnsetType | None = UNSET
    money: Annotated[float, Meta(ge=0, le=MOST)] | UnsetType | None = UNSET

    def values(self) -> dict[str, Any]:
        """The columns with their new values."""
        given = {name: getattr(self, name) for name in _CHANGED}
        changed = {name: value for name, value in given.items() if value is not UNSET}
        money = changed.get("money")
        # The amount as it was written: 0.1 is a little more as a float.
        return changed if money is None else changed | {"money": Decimal(str(money))}


_CHANGED = Changes.__struct_fields__


class NewProject(Changes, frozen=True, kw_only=True):
    """A project to be made: what isn't said of it is not granted, and not limited."""

    name: Name


def create(new: NewProject) -> ProjectRecord:
    """Makes a project; raises ConflictError where there is one of its name."""
    _check_administers_service()
    name = new.name
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} can't be a project's name: it has lowercase letters, digits and dashes, and at most 40 of them"
        )
    with open_store() as engine, engine.begin() as connection:
        if not commands.create_project(connection, name, {"corpora": [], "models": []} | new.values()):
            raise ConflictError(f"there is a project {name!r}; `cotrail project set` changes it")
        return _found(queries.find_project(connection, name), name)


def change(name: str, changes: Changes) -> ProjectRecord:
    """Changes what a project may use, and its quotas; raises UnknownNameError."""
    _check_administers_service()
    values = changes.values()
    if not values:
        raise InputError("say what is to be changed of the project: its corpora, models, open questions or money")
    with open_store() as engine, engine.begin() as connection:
        commands.change_project(connection, name, values)
        return _found(queries.find_project(connection, name), name)


def list_all() -> tuple[ProjectRecord, ...]:
    """The projects that the one who asks administers, by name."""
    with open_store() as engine, engine.connect() as connection:
        every = queries.read_projects(connection)
    return tuple(each for each in every if administers_service() or each.name == actor().project)


def administers_service() -> bool:
    """Whether the one who asks administers all projects, if anything at all."""
    return actor().project in (None, DEFAULT_PROJECT)


def check_reach(project: str | None) -> str:
    """The project of this name, or the own one; raises UnknownNameError where who asks administers none such."""
    own = actor().project or DEFAULT_PROJECT
    if project in (None, own):
        return own
    with open_store() as engine, engine.connect() as connection:
        found = queries.find_project(connection, project)
    return _found(found if administers_service() else None, project).name


def choose(name: str) -> str:
    """The project of this name, for one who sees all; UnknownNameError where there is none, or another is confined."""
    with open_store() as engine, engine.connect() as connection:
        found = queries.find_project(connection, name)
    return _found(found if actor().project is None else None, name).name


def _check_administers_service() -> None:
    if not administers_service():
        raise ForbiddenError("only administrators of the default project make and change projects")


def _found(record: ProjectRecord | None, name: str) -> ProjectRecord:
    if record is None:
        raise UnknownNameError(f"there is no project {name!r}; `cotrail project list` lists them")
    return record
