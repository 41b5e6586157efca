"""The Celery app as every process configures it.

Every setting has its reason in docs/server-settings.md. The worker's own side is `cotrail.workers.app`.
"""

import os
import sys
from pathlib import Path

from celery import Celery
from kombu.entity import Exchange, Queue

from cotrail.common.log_formatting import hide_in_logs
from cotrail.common.processes import tuned
from cotrail.common.toml_files import read_toml
from cotrail.configuration.checks import refusing
from cotrail.configuration.deadlines import check_deadlines
from cotrail.configuration.extensions import load_extensions
from cotrail.configuration.settings import settings
from cotrail.configuration.variables import CELERY, LIBPQ, warn_of_taken_out
from cotrail.core.actions.registry import KINDS
from cotrail.tasks.routing import LEVELS, SERIALIZER, queues_of
from cotrail.workers.transport import Amqp

warn_of_taken_out(CELERY, LIBPQ)
with refusing():
    hide_in_logs(settings().secrets)  # first of all: Celery quotes the broker's URL as it connects
    load_extensions()
    check_deadlines(settings())
app = Celery("cotrail", broker=settings().broker, amqp=Amqp, fixups=[])
_FIXED = read_toml(Path(__file__).with_name("celery.toml"))
_FIXED["broker_transport_options"] |= {"global_keyprefix": settings().broker_prefix, "priority_steps": [*LEVELS]}
app.conf.update(
    **_FIXED,
    include=["cotrail.tasks.step"],
    task_queues=[Queue(queue, Exchange(queue), routing_key=queue) for kind in KINDS for queue in queues_of(kind)],
    task_serializer=SERIALIZER,
    accept_content=[SERIALIZER],
    result_backend=None,
    broker_connection_max_retries=None,
)
app.set_default()


def tune() -> None:
    """Restart this process with the environment of a worker, which C libraries only read at the start."""
    if lacking := {name: value for name, value in tuned().items() if name not in os.environ}:
        warn_of_taken_out(CELERY, LIBPQ)  # they are gone from the environment of the process that is to come
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | lacking)  # noqa: S606 - no shell
