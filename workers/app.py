"""The Celery app: `celery -A workers.app worker -Q reason,read -P threads`.

Every setting has its reason in docs/operations.md.
"""

import gc
from logging import Logger
from typing import Any

from celery import Celery, signals
from kombu.entity import Exchange, Queue

from configuration.settings import settings
from cotrail.common.log_formatting import print_safely
from cotrail.core.actions.registry import ACTIONS
from tasks.messages import SERIALIZER
from tasks.station import close_station, station, stop_station
from workers.claiming import ClaimAhead
from workers.discretion import hide_in_logs
from workers.health import keep_telling
from workers.logs import keep_bounded
from workers.transport import Amqp

YOUNG = 100_000
"""After how many new objects Python looks for cycles among them; messages and rows leave hardly any behind."""

hide_in_logs(settings().secrets)
app = Celery("cotrail", broker=settings().broker, amqp=Amqp)
app.conf.update(
    include=[f"tasks.{kind}" for kind in ACTIONS],
    task_queues=[Queue(kind, Exchange(kind), routing_key=kind) for kind in ACTIONS],
    task_create_missing_queues=False,
    task_serializer=SERIALIZER,
    accept_content=[SERIALIZER],
    result_backend=None,
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_channel_error_retry=True,
    broker_transport_options={
        "global_keyprefix": settings().broker_prefix,
        "ack_emulation": False,
        "socket_timeout": 10,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        "health_check_interval": 25,
    },
    task_publish_retry_policy={"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.2},
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_soft_shutdown_timeout=5,
    worker_enable_soft_shutdown_on_idle=False,
    worker_hijack_root_logger=False,
    worker_enable_remote_control=True,
)
app.steps["consumer"].add(ClaimAhead)
app.set_default()


@signals.after_setup_task_logger.connect
@signals.after_setup_logger.connect
def _print_safely(logger: Logger, **_: Any) -> None:
    """Logs quote servers, models and questions."""
    print_safely(*logger.handlers)


@signals.worker_init.connect
def _keep_log(**_: Any) -> None:
    """Before anything is loaded that may have much to say."""
    keep_bounded()


@signals.worker_ready.connect
def _load_and_announce(sender: Any, **_: Any) -> None:
    """A generation worker counts as ready once its model is loaded."""
    if "reason" in app.amqp.queues.consume_from:
        station().load(settings().model, "fast")
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
    keep_telling(sender.hostname, station().problem)


@signals.worker_shutting_down.connect
def _stop(**_: Any) -> None:
    """Has running generations cut off and given back, so that a shutdown needn't wait for them."""
    stop_station()


@signals.worker_shutdown.connect
def _close(**_: Any) -> None:
    """No task runs any more: the engines are freed while the interpreter is still whole."""
    close_station()
