"""Waking the maintenance process by PostgreSQL's NOTIFY, so that new work needn't wait for its next sweep."""

from sqlalchemy import Connection, func, select

WAKE = "cotrail_wake"
"""The channel on which the maintenance process listens."""


def wake(connection: Connection, run_id: str) -> None:
    """Tells the maintenance process, once this transaction is committed, that a run has work for it."""
    connection.execute(select(func.pg_notify(WAKE, run_id)))
