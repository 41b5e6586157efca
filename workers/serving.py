"""Running a worker of a role in this process."""

import os
import sys

from cotrail.configuration.celery_variables import warn_of
from cotrail.core.actions.kind import Role
from cotrail.core.actions.registry import carried_out_by
from cotrail.workers import TAKEN_OUT
from cotrail.workers.allocator import TUNED

SLOTS = {"retrieval": 2, "evidence": 16}
"""The number of threads of a worker; of a generation worker the settings have it."""

QUIET_OPTIONS = ("-l", "INFO", "--without-gossip", "--without-mingle")
"""Workers share nothing but the queues, so they needn't discover each other, which saves a second at each start."""


def serve(role: Role, *, slots: int | None = None, name: str | None = None, events: bool = False) -> None:
    """Work on the steps of a role's kinds until SIGTERM or SIGINT.

    slots: how many steps at a time; None: as many as suits the role.
    name: the worker's name before `@` and the host; None: the role. Workers of one host need different ones.
    events: whether Flower is told of each task.

    Unlike Celery's own command, nothing is imported from the working directory, where a `tasks.py` may lie.
    """
    _tune_allocator()
    from celery.bin.celery import celery

    from cotrail.workers.app import app

    # What `app.worker_main` does, which loses the exit code.
    celery.params[0].default = app
    sys.exit(celery.main(["worker", *options(role, slots=slots, name=name, events=events)], standalone_mode=False))


def options(role: Role, *, slots: int | None = None, name: str | None = None, events: bool = False) -> list[str]:
    """The options of Celery's worker."""
    from cotrail.configuration.settings import settings

    count = slots or SLOTS.get(role) or settings().generation_slots
    queues = ",".join(carried_out_by(role))
    own = ["-Q", queues, "-P", "threads", "-c", str(count), "-n", f"{name or role}@%h"]
    return [*own, *QUIET_OPTIONS, *["-E"] * events]


def _tune_allocator() -> None:
    """Restart this process with the environment of a worker, which the C library only reads at the start."""
    if not os.environ.keys() >= TUNED.keys():
        warn_of(TAKEN_OUT)  # they are gone from the environment of the process that is to come
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **TUNED})  # noqa: S606 - no shell
