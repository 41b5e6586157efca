"""The role that only reads: `cotrail sql` and other programs connect as it, so that nothing recorded can be changed.

A session of the owner's that is only set to read (`default_transaction_read_only`, `SET ROLE`) can undo that itself.
A role of its own can't: it owns nothing, is a member of no other role, and may read what the migrating user owns.
"""

import hashlib
import hmac
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import Connection, text

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
