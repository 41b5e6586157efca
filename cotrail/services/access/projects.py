"""Projects: made, listed and changed, the places of what belongs to them, and who asked for what in them."""

import re
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict, replace

from cotrail.errors import ConflictError, ForbiddenError, InputError, UnknownNameError
from cotrail.models.commands import administering as commands
from cotrail.models.commands.administering import record_activities
from cotrail.models.queries import projects as queries
from cotrail.models.queries.projects import ActivityRecord as ActivityRecord
from cotrail.models.queries.projects import ProjectRecord as ProjectRecord
from cotrail.models.queries.projects import beginner_of, list_activities
from cotrail.models.schema.states import DEFAULT_PROJECT
from cotrail.services.actor import Actor, Scope, acting, actor
from cotrail.services.operations.operation import operation
from cotrail.services.store import open_store, reading

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")

Name = Annotated[str, Meta(min_length=1, max_length=200)]

MOST = 2**53


class Changes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be changed of a project; null allows everything (see `ProjectRecord`)."""

    corpora: tuple[Name, ...] | UnsetType | None = UNSET
    models: tuple[Name, ...] | UnsetType | None = UNSET
    open_questions: Annotated[int, Meta(ge=0, le=MOST)] | UnsetType | None = UNSET
    money: Annotated[float, Meta(ge=0, le=MOST)] | UnsetType | None = UNSET
    stored_bytes: Annotated[int, Meta(ge=0, le=MOST)] | UnsetType | None = UNSET

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


@operation("projects.create", "POST", "/projects", Scope.ADMIN, status=201)
def create_project(new: NewProject) -> ProjectRecord:
    """Make a project, which may use none of the corpora of others and no models but those named."""
    # Raises ConflictError where there is one of its name.
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


@operation("projects.change", "PATCH", "/projects/{project}", Scope.ADMIN)
def change_project(project: str, changes: Changes) -> ProjectRecord:
    """Change what a project may use, or its quotas."""
    _check_administers_service()
    values = changes.values()
    if not values:
        raise InputError(f"say what is to be changed of the project: any of {', '.join(_CHANGED)}")
    with open_store() as engine, engine.begin() as connection:
        commands.change_project(connection, project, values)
        return _found(queries.find_project(connection, project), project)


@operation("projects.index", "GET", "/projects", Scope.ADMIN)
def list_projects() -> tuple[ProjectRecord, ...]:
    """List projects with what they may use, and their quotas."""
    # Those that the one who asks administers, by name.
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


# Where things are: files, hosts and addresses, which are no affair of the service's other projects.

HIDDEN = "..."
"""What other projects see in their place."""

_PLACE = re.compile(r"""[a-z][a-z0-9+.-]{0,19}://[^\s"'),;]+|(?<![\w./~])/(?!v1/)[\w.@~+-]+(?:/[^\s"'),:;]*)+""")
_SERVER = re.compile(r"""(?<=server at )"[^"]*"(?: \([^)]*\))?|(?<=socket )"[^"]*"|(?<=host name )"[^"]*\"""")


def seen_place(place: str) -> str:
    """A file, a host or an address as it is, for the service's own projects; others see that there is one."""
    return place if _sees_places() or not place else HIDDEN


def without_places(message: str) -> str:
    """A message in which other projects see no absolute paths and no addresses."""
    return message if _sees_places() else _SERVER.sub(HIDDEN, _PLACE.sub(HIDDEN, message))


def _sees_places() -> bool:
    return administers_service() and bool(actor().scopes)


# Activities: who asked the service to change what. They are kept as long as the store is.


class Activity(Struct, frozen=True, kw_only=True):
    """A request that was to change something; see `ActivityRecord`."""

    who: Actor
    operation: str
    subject: str | None
    status: int
    request_id: str

    @property
    def row(self) -> Mapping[str, Any]:
        """It, as it is stored."""
        known = {name: value for name, value in asdict(self).items() if name != "who"}
        project = self.who.project or DEFAULT_PROJECT
        return known | {"actor": self.who.name, "token_id": self.who.token, "project": project}


def record(activities: Sequence[Activity]) -> None:
    """Stores activities."""
    with open_store() as engine, engine.begin() as connection:
        record_activities(connection, [each.row for each in activities])


def began(subject: str, operations: Collection[str]) -> bool:
    """Whether the token of the one who asks made this run or job by one of these operations, as the first one."""
    with reading() as connection:
        beginner = beginner_of(connection, subject, operations)
    return beginner is not None and beginner == actor().token


Limit = Annotated[int, Meta(ge=1, le=1000)]
Before = Annotated[int, Meta(ge=1, le=2**53)]


@operation("activities.index", "GET", "/activities", Scope.ADMIN)
def show_activities(limit: Limit = 100, before: Before | None = None) -> tuple[ActivityRecord, ...]:
    """List what was asked for that changes anything, the newest first; before: only what came before this one."""
    # Those in the project of the one who asks; the service's administrators see all.
    who = replace(actor(), project=None) if administers_service() else actor()
    with acting(who), open_store() as engine, engine.connect() as connection:
        return tuple(list_activities(connection, limit=limit, before=before))
