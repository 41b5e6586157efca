"""Bringing the tables of the database that the settings name up to date."""

from cotrail.configuration.settings import settings
from cotrail.models.schema import migrating
from cotrail.models.schema.database import explained
from cotrail.models.schema.migrating import Migrated


def migrate() -> Migrated:
    """Migrates to the revision of this code.

    Raises UnavailableError where the database doesn't answer, doesn't let this user in or lets it make no tables, and
    InputError where a newer cotrail has migrated it.
    """
    with explained(local=settings().database_url is None):
        return migrating.migrate(settings().database)
