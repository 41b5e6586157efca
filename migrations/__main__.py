"""`python -m migrations`: brings the schema of the database that COTRAIL_DATABASE_URL names up to date."""

from models.database import migrate
from tasks.settings import settings

if __name__ == "__main__":
    migrate(settings().database)
