"""`python -m migrations`: brings the schema of the database that COTRAIL_DATABASE_URL names up to date."""

from configuration.settings import settings
from models.schema.database import migrate

if __name__ == "__main__":
    migrate(settings().database)
