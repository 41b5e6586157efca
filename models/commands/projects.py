"""Making and changing projects."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, update
from sqlalchemy.dialects.postgresql import insert

from cotrail.models.schema.service_tables import projects


def create_project(connection: Connection, name: str, values: Mapping[str, Any]) -> bool:
    """Make a project; returns False where there is one of this name."""
    new = insert(projects).values({"name": name, **values}).on_conflict_do_nothing().returning(projects.c.name)
    return connection.execute(new).scalar() is not None


def change_project(connection: Connection, name: str, values: Mapping[str, Any]) -> bool:
    """Change a project's grants and quotas; returns False where there is none of this name."""
    change = update(projects).where(projects.c.name == name).values(values).returning(projects.c.name)
    return connection.execute(change).scalar() is not None
