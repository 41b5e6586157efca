"""What projects may use beside their own."""

from typing import Any

from sqlalchemy import Connection, select

from cotrail.models.schema.service_tables import projects


def read_grants(connection: Connection, project: str) -> dict[str, Any]:
    """Return the `corpora` and the `models` that a project may use; None for all."""
    row = connection.execute(select(projects.c.corpora, projects.c.models).where(projects.c.name == project)).first()
    return {"corpora": None, "models": None} if row is None else {"corpora": row.corpora, "models": row.models}
