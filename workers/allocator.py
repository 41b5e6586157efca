"""What C libraries read as a worker starts: how memory is handed out, and how many threads compute."""

import os
import sys

from cotrail.common.processes import host_cores, usable_cores
from cotrail.configuration.variables import CELERY, LIBPQ, warn_of_taken_out

TUNED = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
"""The environment that a worker is started with: it turns glibc's per-thread caches off. Each thread would keep up to
seven freed pieces of every size; a hundred threads fill that slowly, and the process looks as if it leaked."""


def tuned() -> dict[str, str]:
    """Return the environment that a worker is started with, for where the user's own doesn't have these variables."""
    cores = usable_cores()
    return TUNED if cores >= host_cores() else {**TUNED, "OMP_NUM_THREADS": str(cores)}


def tune() -> None:
    """Restart this process with the environment of a worker, which C libraries only read at the start."""
    if lacking := {name: value for name, value in tuned().items() if name not in os.environ}:
        warn_of_taken_out(CELERY, LIBPQ)  # they are gone from the environment of the process that is to come
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | lacking)  # noqa: S606 - no shell
