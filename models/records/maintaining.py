"""How maintenance processes show in the database, and are woken: by the name of their session, a lock and NOTIFY."""

import os
import socket

from sqlalchemy import Connection, func, select

WAKE = "cotrail_wake"
"""The channel on which maintenance processes listen."""

# This number and the two below are four letters each, `cotr`, `batc` and `summ`, which no other program is likely to
# lock.
LEADER = 0x636F7472
"""The advisory lock of the active one."""

SESSION_PREFIX = "cotrail maintenance "
"""The beginning of the name of a maintenance process's session."""

BATCHES_LEADER, BATCHES_PREFIX = 0x62617463, "cotrail batches "
"""The same of the generation workers, of which one sends and collects batches."""

SUMMARIZER = 0x73756D6D
"""The advisory lock of the process that summarizes questions that have ended."""

LONGEST_NAME = 63
"""Bytes of a session's name that PostgreSQL keeps."""


def session_name(prefix: str = SESSION_PREFIX) -> str:
    """Return the name of this process's session, with its id and its host, which is cut where it is too long."""
    name = f"{prefix}{os.getpid()} {socket.gethostname()}"
    return name.encode()[:LONGEST_NAME].decode(errors="ignore")


def notify(connection: Connection, run_id: str) -> None:
    """Tells the maintenance process, once this transaction is committed, that a run has work for it."""
    connection.execute(select(func.pg_notify(WAKE, run_id)))
