"""Following a job until it ends."""

import time
from collections.abc import Callable

from cotrail.cli.terminal.output import console
from cotrail.services.jobs.job import Job
from cotrail.services.operations import jobs

POLL_SECONDS = 1.0


def follow_job(job: Job, show: Callable[[Job], None]) -> Job:
    """Ask for a job until it has ended, and return it as it is then; show: called each time."""
    try:
        while job.open:
            show(job)
            time.sleep(POLL_SECONDS)
            job = jobs.show(job.job)
    except KeyboardInterrupt:
        line = f"The job continues; `cotrail jobs cancel {job.job}` ends it."
        console(stderr=True).print(line, soft_wrap=True)
        raise
    show(job)
    return job
