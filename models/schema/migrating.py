"""Bringing the database's schema up to date with Alembic.

Numbers of transactions in a restored store, which another server gave.

They order what readers have seen (`cotrail.models.queries.events`). Those that this server hasn't given yet would keep
their rows from readers until it has: such rows take the number of the transaction that finds them, as if all of them
had changed in it.
"""

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from msgspec import Struct
from psycopg.errors import DeadlockDetected
from sqlalchemy import Connection, exists, func, select, update
from tenacity import retry, retry_if_exception_cause_type, stop_after_attempt

from cotrail.errors import InputError
from cotrail.models.schema.deployment import MIGRATIONS
from cotrail.models.schema.seals import amending
from cotrail.models.schema.tables import questions, runs, steps

_CURRENT = func.pg_current_xact_id()


def renumber(connection: Connection) -> None:
    """Give rows from a server whose numbers are ahead of this one's a number of this transaction.

    Where there are none, which is found by one look into an index for each run, nothing is written.
    """
    for table, column in ((steps, steps.c.ended_in), (questions, questions.c.changed_in)):
        with_some = select(runs.c.id).where(exists().where(table.c.run_id == runs.c.id, column > _CURRENT))
        for run in connection.execute(with_some).scalars().all():
            amending(connection)
            ahead = table.c.run_id == run, column > _CURRENT
            connection.execute(update(table).where(*ahead).values({column: _CURRENT}))


DEADLOCK_TRIES = 10
"""The number of tries of a migration that deadlocks with live workers."""

VERSION_TABLE = "cotrail_version"
"""The table that has the schema's revision: not Alembic's usual one, which another program in the database may use."""


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


def alembic_config(url: str) -> Config:
    """Return Alembic's configuration for a database, without a file."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["url"] = url
    return config


@retry(retry=retry_if_exception_cause_type(DeadlockDetected), stop=stop_after_attempt(DEADLOCK_TRIES), reraise=True)
def _upgrade(config: Config, revision: str) -> None:
    command.upgrade(config, revision)
