"""`python -m cotrail.services.runs.job_process JOB EPOCH`: carries out a job that was claimed under this epoch.

It ends with 0 once the outcome is recorded, or doesn't count any more, and otherwise with something else. When its
standard input closes, the process that claimed the job is gone, and this one ends at once.
"""

import logging
import os
import sys
from importlib import import_module

import msgspec
from sqlalchemy import Engine

from cotrail.common.processes import end_with_parent
from cotrail.configuration.extensions import load_extensions
from cotrail.configuration.settings import settings
from cotrail.errors import CotrailError, UnavailableError
from cotrail.models.execution.jobs import Held, fail_job, finish_job, release_job
from cotrail.models.queries.experiments import read_job
from cotrail.models.records.idempotency import JobRecord
from cotrail.services.actor import ALL_SCOPES, Actor, acting
from cotrail.services.library.uploaded_files import named_without_place
from cotrail.services.runs.jobs import LostJobError, Work
from cotrail.services.store import open_store, reading_from

logger = logging.getLogger(__name__)

MODULES = {"index": "indexing", "experiment": "conducting"}
"""The modules next to this one with the work of each kind of job (`carry_out`); only the one needed is imported."""

OUTAGE_SECONDS = 30.0
"""The pause after which a job is tried again that needs a server which doesn't answer."""


def main(job_id: str, epoch: int) -> None:
    """Carry out the job and record its outcome."""
    end_with_parent()
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s: %(levelname)s] %(message)s")
    os.nice(5)  # searches and the API go first
    with open_store() as engine:
        with reading_from(engine) as connection:
            job = read_job(connection, job_id)
        with acting(Actor(name=f"job:{job_id}", project=job.project, scopes=ALL_SCOPES)), open_store() as own:
            _carry_out(own, job, (job_id, epoch))


def _carry_out(engine: Engine, job: JobRecord, held: Held) -> None:
    try:
        load_extensions()  # search engines, systems and datasets of one's own
        kind = import_module(f"cotrail.services.runs.{MODULES[job.kind]}")
        with Work(engine, held, job.request) as work:
            result = msgspec.to_builtins(kind.carry_out(work))
    except LostJobError:
        logger.info("the job %s was cancelled, or taken up by another process", job.id)
    except UnavailableError as error:
        logger.warning("the job %s waits for a server: %s", job.id, error)
        with engine.begin() as connection:
            release_job(connection, held, pause=OUTAGE_SECONDS)
    except CotrailError as error:
        message = settings().secrets.hidden(named_without_place(str(error)))
        with engine.begin() as connection:
            fail_job(connection, held, {"type": type(error).__name__, "message": message})
    else:
        with engine.begin() as connection:
            finish_job(connection, held, result)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
