"""Whether a process of the service can do its work: what it needs answers, and the database is this version's."""

from cotrail.configuration.settings import settings
from cotrail.errors import UnavailableError
from cotrail.models.schema.deployment import check_version
from cotrail.services.store import open_store
from cotrail.tasks.broker_health import broker_problem


def check_ready() -> None:
    """Raises UnavailableError where PostgreSQL or Redis doesn't answer, or the database is another version's."""
    with open_store() as engine, engine.connect() as connection:
        check_version(connection)
    if problem := broker_problem(settings().broker, settings().broker_prefix):
        raise UnavailableError(f"the broker takes no messages: {problem}")
