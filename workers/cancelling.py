"""Cancelling: what a `cotrail cancel` that was broken off has left is finished, a little between each two sweeps."""

import time

from psycopg.errors import DeadlockDetected, LockNotAvailable
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from models.commands.control import being_cancelled, cancelling

SECONDS = 0.2
"""How long that may take each time, but for the last chunk."""


def go_on(engine: Engine) -> None:
    """Cancels the next questions of runs that are cancelled; the command may still be at them itself."""
    until = time.monotonic() + SECONDS
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
