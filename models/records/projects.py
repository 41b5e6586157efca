"""The project in whose name a connection works, and what of the store is the project's."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, Table

from cotrail.models.schema.states import DEFAULT_PROJECT

BETWEEN = "~"
"""Stands between a project and a name of its own, where the names of all projects are in one place."""

PROJECT = "cotrail_project"
"""The execution option of connections that names the project; without it, all projects are seen."""


def project_of(connection: Connection | Engine) -> str | None:
    """Return the project that the connection is confined to; None where it sees all."""
    name: str | None = connection.get_execution_options().get(PROJECT)
    return name


def own_project(connection: Connection | Engine) -> str:
    """Return the project that what is made through this connection belongs to."""
    return project_of(connection) or DEFAULT_PROJECT


def in_project(connection: Connection, table: Table) -> list[ColumnElement[bool]]:
    """Return the condition that rows of the table are the project's, for WHERE; nothing where all are seen."""
    name: Any = project_of(connection)
    return [] if name is None else [table.c.project == name]


def qualified(connection: Connection | Engine, name: str) -> str:
    """Return the id, unique over all projects, of what the project calls so; names of the default one are ids."""
    return f"{_prefix(connection)}{name}"


def unqualified(connection: Connection | Engine, id_: str) -> str:
    """Return what the project calls the thing with this id."""
    return id_.removeprefix(_prefix(connection))


def _prefix(connection: Connection | Engine) -> str:
    project = own_project(connection)
    return "" if project == DEFAULT_PROJECT else f"{project}{BETWEEN}"
