"""Bringing the database's schema up to date with Alembic."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from psycopg.errors import DeadlockDetected
from tenacity import retry, retry_if_exception_cause_type, stop_after_attempt

TRIES = 10
"""The number of tries of a migration that deadlocks with live workers."""

MIGRATIONS = Path(__file__).parents[2] / "migrations"


@retry(retry=retry_if_exception_cause_type(DeadlockDetected), stop=stop_after_attempt(TRIES), reraise=True)
def migrate(url: str, revision: str = "head") -> None:
    """Bring the schema up to a revision; a migration that deadlocks with live workers is tried again."""
    command.upgrade(alembic_config(url), revision)


def alembic_config(url: str) -> Config:
    """Return Alembic's configuration for a database, without a file."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["url"] = url
    return config
