"""`python -m migrations`: upgrades the schema of the database that COTRAIL_DATABASE_URL names."""

from configuration.refusals import refusing
from configuration.settings import settings
from models.schema.migrating import migrate

if __name__ == "__main__":
    with refusing():
        migrate(settings().database)
