"""`python -m cotrail.services.summarizing`: summarizes the questions of all runs that have ended, until none is left.

Maintenance starts it where some are due. When its standard input closes, maintenance is gone, and this process ends at
once: what it has written by then counts, and another one continues from there.
"""

import logging
import os
import time

from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from cotrail.common.processes import end_with_parent
from cotrail.configuration.checks import refusing
from cotrail.configuration.extensions import load_extensions
from cotrail.errors import CotrailError
from cotrail.models.commands.summarizing import VERSION, due_runs
from cotrail.models.schema.database import SUMMARIZER
from cotrail.services.results.summarizing import for_seconds, summarize
from cotrail.services.store import open_store, reading_from

logger = logging.getLogger(__name__)

AT_ONCE = 20
"""The number of runs looked at in turn, the newest first."""

TURN_SECONDS = 5.0
"""How long a run is summarized before the next one's turn, not counting the last chunk."""

PAUSE_SECONDS = 2.0
"""Between two looks at runs that go on; while nothing ends for `IDLE_LOOKS` of them, the process ends."""

IDLE_LOOKS = 15


def main() -> None:
    """Summarize what is due, and what becomes so soon."""
    end_with_parent()
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s: %(levelname)s] %(message)s")
    os.nice(10)  # everything else goes first
    with refusing():
        load_extensions()  # datasets and metrics of one's own
    with open_store() as engine, engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        # Held as long as this session: one process summarizes, on whichever machine.
        if connection.execute(text("SELECT pg_try_advisory_lock(:lock)"), {"lock": SUMMARIZER}).scalar():
            _work(engine)


def _work(engine: Engine) -> None:
    idle = 0
    while idle < IDLE_LOOKS:
        idle = 0 if look(engine) else idle + 1
        time.sleep(PAUSE_SECONDS)


def look(engine: Engine) -> bool:
    """Give each run that is due a turn; returns whether anything was done for one."""
    with reading_from(engine) as connection:
        due = due_runs(connection, VERSION, AT_ONCE)
    return True in [_turn(engine, run_id) for run_id in due]  # each has its turn


def _turn(engine: Engine, run_id: str) -> bool:
    try:
        summarize(engine, run_id, for_seconds(TURN_SECONDS))
    except (CotrailError, SQLAlchemyError) as error:
        logger.warning("questions of %s can't be summarized now: %s", run_id, error)
        return False
    return True


if __name__ == "__main__":
    main()
