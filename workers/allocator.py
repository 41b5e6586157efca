"""Tuning of the C library's memory allocator for workers."""

import os
import sys

from cotrail.configuration.celery_variables import warn_of
from cotrail.workers import TAKEN_OUT

TUNED = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
"""The environment that a worker is started with: it turns glibc's per-thread caches off. Each thread would keep up to
seven freed pieces of every size; a hundred threads fill that slowly, and the process looks as if it leaked."""


def tune_allocator() -> None:
    """Restart this process with the environment of a worker, which the C library only reads at the start."""
    if not os.environ.keys() >= TUNED.keys():
        warn_of(TAKEN_OUT)  # they are gone from the environment of the process that is to come
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **TUNED})  # noqa: S606 - no shell
