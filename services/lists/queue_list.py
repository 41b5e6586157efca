"""The queues: what waits in them, who carries it out and how fast, and what holds it back, from the record alone."""

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.configuration.settings import settings
from cotrail.core.actions.registry import KINDS
from cotrail.models.queries.queues import (
    WINDOW_SECONDS,
    KindQueue,
    OpenBatch,
    PausedRun,
    PutOff,
    RecentWork,
    Trouble,
    count_waiting,
    read_open_batches,
    read_paused,
    read_put_off,
    read_queues,
    read_recent_work,
    read_troubles,
)
from cotrail.models.queries.workers import StepUnderWay, read_steps_under_way
from cotrail.models.records.blockage import read_blockage, stopped_runs

MOST_STOPPED = 20
"""The most runs whose blockage is told."""


class ListedQueue(KindQueue, frozen=True, kw_only=True):
    """A queue with its pace; per_second: steps a second lately; milliseconds: what one of them took on average."""

    role: str
    per_second: float
    milliseconds: float | None


class BusyWorker(Struct, frozen=True, kw_only=True):
    """A process that holds steps or carried some out lately.

    worker: HOST:PID:KEY; holds: the steps that it has under way, the oldest first; done: what it carried out lately.
    """

    worker: str
    holds: tuple[StepUnderWay, ...]
    done: tuple[RecentWork, ...]


class StoppedRun(Struct, frozen=True, kw_only=True):
    """A run that one cause stops until a person has fixed it; questions: how many it has blocked."""

    run: str
    questions: int
    type: str
    message: str


class QueueList(Struct, frozen=True, kw_only=True):
    """The queues of all kinds of which steps are under way or were carried out lately.

    window_seconds: the window of all that is lately; waiting: the steps that wait for their questions to be admitted.
    flower: the address of Flower, empty where none is known.
    """

    window_seconds: float
    queues: tuple[ListedQueue, ...]
    waiting: int
    workers: tuple[BusyWorker, ...]
    troubles: tuple[Trouble, ...]
    put_off: tuple[PutOff, ...]
    batches: tuple[OpenBatch, ...]
    paused: tuple[PausedRun, ...]
    stopped: tuple[StoppedRun, ...]
    flower: str


def list_queues(connection: Connection) -> QueueList:
    """The queues now, of what the connection's project asks."""
    work = read_recent_work(connection)
    return QueueList(
        window_seconds=WINDOW_SECONDS,
        queues=_queues(read_queues(connection), work),
        waiting=count_waiting(connection),
        workers=_workers(read_steps_under_way(connection), work),
        troubles=read_troubles(connection),
        put_off=read_put_off(connection),
        batches=read_open_batches(connection),
        paused=read_paused(connection),
        stopped=tuple(_stopped(connection)),
        flower=settings().flower_url,
    )


def _queues(queues: tuple[KindQueue, ...], work: tuple[RecentWork, ...]) -> tuple[ListedQueue, ...]:
    known = {each.kind: each for each in queues}
    for each in work:
        known.setdefault(each.kind, _empty(each.kind))
    return tuple(_listed(known[kind], [each for each in work if each.kind == kind]) for kind in sorted(known))


def _empty(kind: str) -> KindQueue:
    return KindQueue(kind=kind, ready=0, put_off=0, paused=0, running=0, batched=0, oldest_seconds=None)


def _listed(queue: KindQueue, work: list[RecentWork]) -> ListedQueue:
    done = sum(each.steps for each in work)
    return ListedQueue(
        **{name: getattr(queue, name) for name in KindQueue.__struct_fields__},
        role=KINDS[queue.kind].role if queue.kind in KINDS else "",
        per_second=done / WINDOW_SECONDS,
        milliseconds=sum(each.milliseconds for each in work) / done if done else None,
    )


def _workers(held: list[StepUnderWay], work: tuple[RecentWork, ...]) -> tuple[BusyWorker, ...]:
    names = sorted({each.worker for each in held} | {each.worker for each in work})
    return tuple(
        BusyWorker(
            worker=name,
            holds=tuple(each for each in held if each.worker == name),
            done=tuple(each for each in work if each.worker == name),
        )
        for name in names
    )


def _stopped(connection: Connection) -> list[StoppedRun]:
    found = ((run, read_blockage(connection, run)) for run in sorted(stopped_runs(connection))[:MOST_STOPPED])
    return [
        StoppedRun(run=run, questions=each.questions, type=each.type, message=each.message)
        for run, each in found
        if each is not None
    ]
