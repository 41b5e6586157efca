"""Which version of cotrail a database belongs to, and through which Redis its processes are notified.

A process of another version might leave out in silence what it doesn't know (a column that changes what a step does),
or seal records by other rules. So `migrate` records the version, and each process compares itself with it: as it
starts, in the statement of each claim and each result, and with each submission.

The role that only reads: `cotrail sql` and other programs connect as it, so that nothing recorded can be changed. A
session of the owner's that is only set to read (`default_transaction_read_only`, `SET ROLE`) can undo that itself. A
role of its own can't: it owns nothing, is a member of no other role, and may read what the migrating user owns.
"""

import hashlib
import hmac
from functools import cache
from pathlib import Path
from typing import Any, cast

import psycopg
from msgspec import Struct
from psycopg import sql
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


LONGEST_NAME = 63
"""Bytes of a role's name that PostgreSQL keeps."""

READER_SUFFIX = "_reader"

MADE_BY_COTRAIL = "made by cotrail, for `cotrail sql`"
"""The comment on a role that tells it from one of that name which somebody else made."""

WRITING_FUNCTIONS = ("lo_create(oid)", "lo_creat(integer)", "lo_from_bytea(oid, bytea)")
"""What any role may write with by default: large objects."""


def reader_name(database: str) -> str:
    """Return the role's name: roles are the whole server's, and each database has one."""
    kept = database.encode()[: LONGEST_NAME - len(READER_SUFFIX)].decode(errors="ignore")
    return f"{kept}{READER_SUFFIX}"


def reader_password(connection: "psycopg.Connection[Any]") -> str | None:
    """Return the role's password, which follows from the one of the connection; None where that has none."""
    own = connection.info.password
    return hmac.new(own.encode(), b"cotrail reads", hashlib.sha256).hexdigest() if own else None


def reader_comment(connection: Connection, role: str) -> str | None:
    """Return the comment on a role; None where there is no such role."""
    query = "SELECT coalesce(shobj_description(oid, 'pg_authid'), '') FROM pg_roles WHERE rolname = :role"
    return connection.execute(text(query), {"role": role}).scalar()


def provide_reader(connection: Connection) -> None:
    """Make the role, unless this user may make none, and let it read everything that this user owns here or will own.

    A role of that name which cotrail didn't make is left as it is.
    """
    driver: psycopg.Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]
    role = reader_name(driver.info.dbname)
    comment = reader_comment(connection, role)
    if comment is None:
        if not _holds(connection, "SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user"):
            return
        _execute(driver, "CREATE ROLE {role} LOGIN", role)
        _execute(driver, "ALTER ROLE {role} SET default_transaction_read_only = on", role)
        _execute(driver, f"COMMENT ON ROLE {{role}} IS '{MADE_BY_COTRAIL}'", role)
    elif comment != MADE_BY_COTRAIL:
        return
    # Each time, as the owner's own password may have changed, from which this one follows.
    if password := reader_password(driver):
        # What is sent to the server, and may be in its log, isn't the password itself.
        sealed = driver.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
        driver.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sealed))
    _grant(connection, driver, role)
    _close_what_is_open_to_all(connection, driver)


def _grant(connection: Connection, driver: "psycopg.Connection[Any]", role: str) -> None:
    owned = (
        "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
        " AND relkind IN ('r', 'p', 'v', 'm') AND pg_has_role(relowner, 'USAGE')"
    )
    tables = connection.execute(text(owned)).scalars().all()
    schema = sql.Identifier(connection.execute(text("SELECT current_schema()")).scalar_one())
    _execute(driver, "GRANT USAGE ON SCHEMA {schema} TO {role}", role, schema=schema)
    _execute(
        driver, "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT ON TABLES TO {role}", role, schema=schema
    )
    if tables:
        named = sql.SQL(", ").join(sql.Identifier(table) for table in tables)
        _execute(driver, "GRANT SELECT ON {tables} TO {role}", role, tables=named)


def _close_what_is_open_to_all(connection: Connection, driver: "psycopg.Connection[Any]") -> None:
    """Take from PUBLIC what would let the role write: temporary tables and large objects; cotrail uses neither."""
    if _holds(connection, "SELECT pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = current_database()"):
        database = sql.Identifier(driver.info.dbname)
        driver.execute(sql.SQL("REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC").format(database))
    if _holds(connection, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
        functions = ", ".join(f"pg_catalog.{function}" for function in WRITING_FUNCTIONS)
        driver.execute(sql.SQL(f"REVOKE EXECUTE ON FUNCTION {functions} FROM PUBLIC"))


def _holds(connection: Connection, query: str) -> bool:
    return bool(connection.execute(text(query)).scalar_one())


def _execute(driver: "psycopg.Connection[Any]", statement: str, role: str, **parts: sql.Composable) -> None:
    driver.execute(sql.SQL(statement).format(role=sql.Identifier(role), **parts))
