"""Whether a process of the service can do its work: what it needs answers, and the tables are those of this code."""

from cotrail.configuration.settings import settings
from cotrail.errors import UnavailableError
from cotrail.models.schema.migrating import is_up_to_date
from cotrail.services.store import open_store
from cotrail.tasks.routing import broker_problem


def check_ready() -> None:
    """Raises UnavailableError where PostgreSQL or Redis doesn't answer, or the schema isn't up to date."""
    with open_store() as engine, engine.connect() as connection:
        if not is_up_to_date(connection):
            raise UnavailableError("the database's tables aren't those of this cotrail; `cotrail migrate` changes them")
    if problem := broker_problem(settings().broker):
        raise UnavailableError(f"the broker doesn't answer: {problem}")
