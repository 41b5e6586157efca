"""Alembic's environment: all migrations run in one transaction of one connection."""

from alembic import context
from sqlalchemy import create_engine, pool, text

from models.schema.tables import Base

LOCK = 0x6D696772
"""Key of the advisory lock that lets one process at a time migrate; the others then find nothing to do."""

engine = create_engine(context.config.attributes["url"], poolclass=pool.NullPool)
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=Base.metadata, compare_server_default=True)
    with context.begin_transaction():
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        context.run_migrations()
engine.dispose()
