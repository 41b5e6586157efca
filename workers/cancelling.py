"""Completing cancellations that an interrupted `cotrail cancel` left unfinished, a little after each sweep."""

import time

from psycopg.errors import DeadlockDetected, LockNotAvailable
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from cotrail.models.commands.control import being_cancelled, cancelling

SWEEP_SECONDS = 0.2
"""How long it may take each time, not counting the last chunk."""


def continue_cancelling(engine: Engine) -> None:
    """Cancel the next questions of cancelled runs.

    The command itself may still be doing so: a chunk that it has locked is left to it.
    """
    until = time.monotonic() + SWEEP_SECONDS
    with engine.begin() as connection:
        runs = being_cancelled(connection)
    for run_id in runs:
        try:
            for _ in cancelling(engine, run_id, tries=1):
                if time.monotonic() >= until:
                    return
        except OperationalError as error:
            if not isinstance(error.orig, DeadlockDetected | LockNotAvailable):
                raise
