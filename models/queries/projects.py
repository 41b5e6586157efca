"""Projects: what each may use, and its quotas."""

from datetime import datetime
from decimal import Decimal

from msgspec import Struct
from sqlalchemy import Connection, select

from cotrail.models.schema.service_tables import projects


class ProjectRecord(Struct, frozen=True, kw_only=True):
    """A project.

    corpora, models: those of others that it may use, None for all; open_questions, money (in US dollars): the most that
    may be open at once and be spent, None where nothing is limited.
    """

    name: str
    created_at: datetime
    corpora: tuple[str, ...] | None
    models: tuple[str, ...] | None
    open_questions: int | None
    money: Decimal | None


def read_projects(connection: Connection) -> list[ProjectRecord]:
    """Return all projects, by name."""
    return [_record(row) for row in connection.execute(select(projects).order_by(projects.c.name))]


def find_project(connection: Connection, name: str) -> ProjectRecord | None:
    """Return the project of this name, if there is one."""
    row = connection.execute(select(projects).where(projects.c.name == name)).one_or_none()
    return None if row is None else _record(row)


def _record(row: object) -> ProjectRecord:
    values = {name: getattr(row, name) for name in ProjectRecord.__struct_fields__}
    return ProjectRecord(**values | {name: values[name] and tuple(values[name]) for name in ("corpora", "models")})
