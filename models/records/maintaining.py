"""How maintenance processes show in the database: their sessions have a name, and the active one holds a lock."""

import os
import socket

LEADER = 0x636F7472
"""The advisory lock of the active one."""

SESSION_PREFIX = "cotrail maintenance "
"""The beginning of the name of a maintenance process's session."""

LONGEST_NAME = 63
"""Bytes of a session's name that PostgreSQL keeps."""


def session_name() -> str:
    """Return the name of this process's session, with its id and its host, which is cut where it is too long."""
    name = f"{SESSION_PREFIX}{os.getpid()} {socket.gethostname()}"
    return name.encode()[:LONGEST_NAME].decode(errors="ignore")
