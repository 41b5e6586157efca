"""Recording who asked the service to change what."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert

from cotrail.models.schema.service_tables import activities


def record_activities(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Store activities, in this order."""
    connection.execute(insert(activities), rows)
