"""Bringing the database's schema up to date with Alembic."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from msgspec import Struct
from psycopg.errors import DeadlockDetected
from sqlalchemy import Connection
from tenacity import retry, retry_if_exception_cause_type, stop_after_attempt

from cotrail.errors import InputError

DEADLOCK_TRIES = 10
"""The number of tries of a migration that deadlocks with live workers."""

MIGRATIONS = Path(__file__).parents[2] / "migrations"


class Migrated(Struct, frozen=True, kw_only=True):
    """The revision of a schema before and after a migration; None: there were no tables yet."""

    before: str | None
    after: str | None


def migrate(url: str, revision: str = "head") -> Migrated:
    """Bring the schema up to a revision, and provide the role that only reads.

    A migration that deadlocks with live workers is tried again. Raises InputError where a newer cotrail has migrated
    it, and what SQLAlchemy raises where the database doesn't answer or lets this user make no tables.
    """
    config = alembic_config(url)
    try:
        _upgrade(config, revision)
    except CommandError as error:
        before, scripts = config.attributes["before"], ScriptDirectory.from_config(config)
        if before is None or before in {each.revision for each in scripts.walk_revisions()}:
            raise
        raise InputError(
            f"the database's schema has revision {before}, and this cotrail knows those up to "
            f"{scripts.get_current_head()}: a newer cotrail has migrated it; install that one"
        ) from error
    return Migrated(before=config.attributes["before"], after=config.attributes["after"])


def is_up_to_date(connection: Connection) -> bool:
    """Return whether the schema has the revision of this code."""
    head = ScriptDirectory(str(MIGRATIONS)).get_current_head()
    return MigrationContext.configure(connection).get_current_revision() == head


def alembic_config(url: str) -> Config:
    """Return Alembic's configuration for a database, without a file."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["url"] = url
    return config


@retry(retry=retry_if_exception_cause_type(DeadlockDetected), stop=stop_after_attempt(DEADLOCK_TRIES), reraise=True)
def _upgrade(config: Config, revision: str) -> None:
    command.upgrade(config, revision)
