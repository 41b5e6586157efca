"""Which version of cotrail a database belongs to, and through which Redis its processes are notified.

A process of another version might leave out in silence what it doesn't know (a column that changes what a step does),
or seal records by other rules. So `migrate` records the version, and each process compares itself with it: as it
starts, in the statement of each claim and each result, and with each submission.
"""

from functools import cache
from pathlib import Path
from typing import cast

from msgspec import Struct
from sqlalchemy import CheckConstraint, ColumnElement, Connection, Table, exists, func, inspect, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Mapped, mapped_column

from cotrail import __version__
from cotrail.audit.records import FORMAT
from cotrail.errors import InputError, OutdatedError
from cotrail.models.schema.base import Base

MIGRATIONS = Path(__file__).parents[2] / "migrations"

UNRELEASED = (
    "the database was made before cotrail 1.0, in a form that was never released and that this cotrail can't read: "
    "keep it for the cotrail that made it, and give this one an empty database (COTRAIL_DATABASE_URL, or another "
    "COTRAIL_HOME)"
)
"""What is said of a database that no migration leads from."""


class Deployment(Base):
    """The one row about the database as a whole."""

    __tablename__ = "deployment"
    __table_args__ = (CheckConstraint("one", name="one"),)

    one: Mapped[bool] = mapped_column(primary_key=True, server_default=text("true"))
    release: Mapped[str]
    revision: Mapped[str]
    format: Mapped[str]
    """The record's."""
    broker: Mapped[str | None]
    """The token of its Redis, which has it too."""
    broker_address: Mapped[str | None]
    """Where the maintenance process reaches that Redis, without its password."""


deployment = cast("Table", Deployment.__table__)
_VERSION = select(deployment.c.release, deployment.c.revision, deployment.c.format)


class Version(Struct, frozen=True, kw_only=True):
    """A version of cotrail, as far as a database is concerned: release, last migration, format of the record."""

    release: str
    revision: str
    format: str

    @property
    def stage(self) -> tuple[int, ...]:
        """By which the later of two versions is known, where they differ in more than the release."""
        return int(self.revision), *map(int, self.format.split("."))

    @property
    def is_released(self) -> bool:
        """Whether a released cotrail may have written this: formats before 1.0 were whole numbers."""
        return "." in self.format

    def __str__(self) -> str:
        return f"cotrail {self.release} (revision {self.revision}, record format {self.format})"


@cache
def own_version() -> Version:
    """Return the version of this code."""
    # The name of the last migration, without asking Alembic, which is slow to import.
    last = max(path.stem for path in (MIGRATIONS / "versions").glob("v*.py"))
    return Version(release=__version__, revision=last[1:].partition("_")[0], format=FORMAT)


def is_own() -> ColumnElement[bool]:
    """Return the condition that the database belongs to the version of this code."""
    own = own_version()
    columns = deployment.c.one, deployment.c.release == own.release, deployment.c.revision == own.revision
    return exists(select(deployment.c.one).where(*columns, deployment.c.format == own.format))


def record_version(connection: Connection, revision: str) -> None:
    """Record that the database belongs to this code, whose migrations have brought it to that revision."""
    row = {"release": own_version().release, "revision": revision, "format": FORMAT}
    connection.execute(insert(deployment).values(row).on_conflict_do_update(index_elements=["one"], set_=row))


def recorded_version(connection: Connection) -> Version | None:
    """Return the version that the database belongs to; None where it has no such row."""
    # That the table is there has to be asked first: without it the statement would fail, and the transaction with it.
    there = connection.execute(select(func.to_regclass(deployment.name))).scalar() is not None
    row = connection.execute(_VERSION).one_or_none() if there else None
    return Version(**row._mapping) if row else None


def refuse_unreleased(connection: Connection) -> None:
    """Raise InputError where the database's tables were made before the record's format 1.0."""
    recorded = recorded_version(connection)
    # Of tables without that row nobody knows the version; an empty database has neither.
    unknown = recorded is None and {"runs", "steps"} <= set(inspect(connection).get_table_names())
    if unknown or (recorded is not None and not recorded.is_released):
        raise InputError(UNRELEASED)


def check_version(connection: Connection) -> None:
    """Raise OutdatedError unless the database belongs to the version of this code."""
    own, recorded = own_version(), recorded_version(connection)
    if recorded == own:
        return
    if recorded is not None and not recorded.is_released:
        raise OutdatedError(UNRELEASED)
    belongs = f"the database belongs to {recorded or 'an older cotrail'}, and this process is of {own}"
    if recorded is None or recorded.stage <= own.stage:
        raise OutdatedError(f"{belongs}; `cotrail migrate`, or `cotrail up` of the local stack, brings it up to date")
    raise OutdatedError(f"{belongs}; install cotrail {recorded.release}, and start this process again")
