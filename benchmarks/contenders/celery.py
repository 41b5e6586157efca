"""A bare Celery chain over Redis, which stores nothing: the upper bound."""

import json
import sys
import time

from celery import Celery, chain, signals
from redis import Redis

from benchmarks.contenders import KINDS
from benchmarks.contenders.workers import PATIENCE_SECONDS, alternating, running, wait_until
from cotrail.configuration.settings import settings
from cotrail.workers.health import announce

FINISHED = "benchmark:finished"

app = Celery("bare", broker=settings().broker)
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    broker_transport_options={"global_keyprefix": "bare:"},
    task_routes={kind: {"queue": kind} for kind in KINDS},
)


def _server() -> Redis:
    return Redis.from_url(settings().broker.replace("redis+socket", "unix"))


_counter = _server()


@app.task(name="retrieve")
def retrieve() -> None:
    """Do nothing."""


@app.task(name="reason")
def reason() -> None:
    """Do nothing."""


@app.task(name="read")
def read() -> None:
    """Count a finished question."""
    _counter.incr(FINISHED)


@signals.worker_ready.connect
def _ready(**_: object) -> None:
    announce("bare")


POOL = "prefork"
QUEUES = ("reason,read", "retrieve")


def main(count: int, processes: int) -> None:
    """Send one chain per question and wait until all have ended."""
    server = _server()
    server.delete(FINISHED)
    tasks = {"retrieve": retrieve, "reason": reason, "read": read}
    with running(alternating("benchmarks.contenders.celery", QUEUES, POOL, 1, processes)):
        began = time.monotonic()
        for _ in range(count):
            chain(*(tasks[kind].si() for kind in KINDS)).apply_async()
        wait_until(lambda: int(server.get(FINISHED) or 0) >= count, seconds=PATIENCE_SECONDS)
        seconds = time.monotonic() - began
    print(json.dumps({"steps": count * len(KINDS), "seconds": seconds, "workers": f"{processes}, {POOL}"}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
