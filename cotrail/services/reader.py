"""The address under which the database can only be read."""

from typing import Any

import psycopg
from sqlalchemy import Connection, text
from sqlalchemy.engine import URL, make_url

from cotrail.configuration.settings import settings
from cotrail.errors import UnavailableError
from cotrail.models.schema.database import CONNECTION_SETTINGS, reason_of
from cotrail.models.schema.reader import reader_comment, reader_name, reader_password
from cotrail.services.store import reading

_WRITES = text(
    "SELECT coalesce(bool_or(has_table_privilege(oid, 'INSERT, UPDATE, DELETE, TRUNCATE')"
    " OR pg_has_role(relowner, 'MEMBER')), true)"
    " FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
)

HOW_TO_MAKE_IT = "`cotrail up`, or `cotrail migrate` for a server of your own, makes it"


def reader_address() -> str:
    """The database's URL under a role that can't write: the settings' own, or else the one that migrating made.

    Raises UnavailableError where there is none, or the server doesn't let it in.
    """
    own = make_url(settings().database)
    with reading() as connection:
        if not connection.execute(_WRITES).scalar_one():
            return _written(own)
        driver: psycopg.Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]
        role, password = reader_name(driver.info.dbname), reader_password(driver)
        _check_exists(connection, role)
    address = _written(own.set(username=role, password=password))
    try:
        psycopg.connect(address, **CONNECTION_SETTINGS).close()  # type: ignore[arg-type]
    except psycopg.OperationalError as error:
        raise UnavailableError(
            f"the server doesn't let in {role}, the role that only reads ({reason_of(error)}): {HOW_TO_MAKE_IT} again; "
            "or set COTRAIL_DATABASE_URL to a role of your own that can't write"
        ) from error
    return address


def _check_exists(connection: Connection, role: str) -> None:
    if reader_comment(connection, role) is None:
        raise UnavailableError(
            f"the server has no role {role}, which only reads: {HOW_TO_MAKE_IT}, as a user who may make roles; or set "
            "COTRAIL_DATABASE_URL to a role of your own that can't write"
        )


def _written(url: URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)
