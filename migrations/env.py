"""Alembic's environment: all migrations run in one transaction of one connection.

The revisions before and after them are left in the configuration's attributes. With the tables comes the role that only
reads them; and a store that was restored from another server gets numbers of this one.
"""

from alembic import context
from sqlalchemy import text
from sqlalchemy.dialects.postgresql.base import ischema_names

from cotrail.models.schema.base import TransactionNumber
from cotrail.models.schema.database import connect
from cotrail.models.schema.deployment import deployment, provide_reader, record_version, refuse_unreleased
from cotrail.models.schema.migrating import VERSION_TABLE, renumber
from cotrail.models.schema.service_tables import batches, question_summaries, tokens
from cotrail.models.schema.tables import runs

LOCK = 0x6D696772
"""Key of the advisory lock that lets one process at a time migrate; the others then find nothing to do."""

# So that Alembic can compare columns of this type.
ischema_names["xid8"] = TransactionNumber
# Each module that is imported adds its tables to the metadata, which all tables share.
(metadata,) = {table.metadata for table in (runs, batches, tokens, question_summaries, deployment)}
attributes = context.config.attributes
engine = connect(attributes["url"])
try:
    with engine.connect() as connection:
        context.configure(
            connection=connection,
            target_metadata=metadata,
            compare_server_default=True,
            include_object=lambda _, __, kind, *___: kind != "index",  # which there are, the migrations alone say
            version_table=VERSION_TABLE,
        )
        with context.begin_transaction():
            connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
            refuse_unreleased(connection)
            attributes["before"] = context.get_context().get_current_revision()
            context.run_migrations()
            attributes["after"] = context.get_context().get_current_revision()
            provide_reader(connection)
            if attributes["after"] is not None:
                record_version(connection, attributes["after"])
            if attributes["after"] == context.get_head_revision():
                renumber(connection)
finally:
    engine.dispose()
