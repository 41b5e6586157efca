"""`python -m migrations`: upgrades the schema of the database that COTRAIL_DATABASE_URL names."""

from configuration.settings import settings
from models.schema.database import migrate

if __name__ == "__main__":
    migrate(settings().database)
