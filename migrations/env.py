"""Alembic's environment: all migrations run in one transaction of one connection.

The revisions before and after them are left in the configuration's attributes. With the tables comes the role that only
reads them; and a store that was restored from another server gets numbers of this one.
"""

from alembic import context
from sqlalchemy import create_engine, pool, text
from sqlalchemy.dialects.postgresql.base import ischema_names

from cotrail.models.schema.base import TransactionNumber
from cotrail.models.schema.batch_tables import batches
from cotrail.models.schema.database import CONNECTION_SETTINGS
from cotrail.models.schema.reader import provide_reader
from cotrail.models.schema.renumbering import renumber
from cotrail.models.schema.service_tables import tokens
from cotrail.models.schema.summary_tables import question_summaries
from cotrail.models.schema.tables import runs

LOCK = 0x6D696772
"""Key of the advisory lock that lets one process at a time migrate; the others then find nothing to do."""

# So that Alembic can compare columns of this type.
ischema_names["xid8"] = TransactionNumber
# Each module that is imported adds its tables to the metadata, which all tables share.
(metadata,) = {table.metadata for table in (runs, batches, tokens, question_summaries)}
attributes = context.config.attributes
engine = create_engine(attributes["url"], poolclass=pool.NullPool, connect_args=CONNECTION_SETTINGS)
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=metadata, compare_server_default=True)
    with context.begin_transaction():
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        attributes["before"] = context.get_context().get_current_revision()
        context.run_migrations()
        attributes["after"] = context.get_context().get_current_revision()
        provide_reader(connection)
        if attributes["after"] == context.get_head_revision():
            renumber(connection)
engine.dispose()
