"""Runs by the names that people give: an id, the beginning of it, a run's own name, or `latest`."""

from sqlalchemy import Connection

from cotrail.models.queries.runs import RunRecord as RunRecord
from cotrail.models.queries.runs import read_run
from cotrail.models.queries.runs import resolve_run as resolve_run


def find_run(connection: Connection, run: str) -> RunRecord:
    """The run that a person means; raises UnknownNameError, and InputError where it may be several."""
    return read_run(connection, resolve_run(connection, run))
