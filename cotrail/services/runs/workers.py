"""Who carries steps out: the workers of all hosts and what each is doing, and the maintenance processes."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum, auto
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.common.structs import common_fields
from cotrail.configuration.settings import settings
from cotrail.core.actions.kind import Role
from cotrail.core.actions.registry import KINDS, carried_out_by
from cotrail.models.queries import queues as stored
from cotrail.models.queries.workers import MaintenanceSession, own_runs, read_maintenance, read_steps_under_way
from cotrail.models.queries.workers import StepUnderWay as StepUnderWay
from cotrail.models.records.budgets import read_blockage, stopped_runs
from cotrail.services.access.projects import seen_place, without_places
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import App, current_app, operation
from cotrail.services.store import reading
from cotrail.tasks.broker_health import Present, call


class WorkerState(StrEnum):
    """What a worker or a maintenance process is doing."""

    WORKING = auto()
    IDLE = auto()

    SILENT = auto()
    """It holds steps and doesn't answer: it is frozen, cut off, or ended a moment ago."""

    ACTIVE = auto()
    """The maintenance process that works."""

    STANDING_BY = auto()
    """A maintenance process that takes over when the active one ends."""


class ListedWorker(Struct, frozen=True, kw_only=True):
    """A process that carries steps out, or maintains; None is what isn't known of a silent one."""

    host: str
    pid: int
    role: str
    state: WorkerState
    name: str | None = None
    slots: int | None = None
    problem: str | None = None
    steps: tuple[StepUnderWay, ...] = ()
    """What it holds, the oldest first."""


class WorkerList(Struct, frozen=True, kw_only=True):
    """All workers that were found; unasked: why Redis doesn't answer, so that idle ones couldn't be asked."""

    workers: tuple[ListedWorker, ...]
    unasked: str | None


def _by_worker(steps: Iterable[StepUnderWay]) -> dict[str, tuple[StepUnderWay, ...]]:
    steps_of = defaultdict[str, list[StepUnderWay]](list)
    for step in steps:
        steps_of[step.worker].append(replace(step, worker=seen_place(step.worker)))
    return {worker: tuple(its) for worker, its in steps_of.items()}


def _answered(present: Present, steps: tuple[StepUnderWay, ...]) -> ListedWorker:
    return ListedWorker(
        host=seen_place(present.host),
        pid=present.pid,
        role=_role(present.kinds),
        state=WorkerState.WORKING if steps else WorkerState.IDLE,
        name=seen_place(present.name),
        slots=present.slots,
        problem=present.problem,
        steps=steps,
    )


def _silent(worker: str, steps: tuple[StepUnderWay, ...], *, answers_known: bool) -> ListedWorker:
    host, pid, _ = worker.rsplit(":", 2)
    return ListedWorker(
        host=seen_place(host),
        pid=int(pid),
        role=_role([step.kind for step in steps]),
        state=WorkerState.SILENT if answers_known else WorkerState.WORKING,
        steps=steps,
    )


def _maintenance(session: MaintenanceSession) -> ListedWorker:
    state = WorkerState.ACTIVE if session.leads else WorkerState.STANDING_BY
    return ListedWorker(host=seen_place(session.host), pid=session.pid, role="maintenance", state=state)


def _role(kinds: Sequence[str]) -> str:
    """The role whose kinds these are; the kinds themselves where a worker has those of several."""
    roles = [role for role in get_args(Role) if set(kinds) <= set(carried_out_by(role))]
    return roles[0] if roles else ", ".join(sorted(set(kinds)))


@operation("workers.index", "GET", "/workers", Scope.READ)
def show_workers(app: App = current_app) -> WorkerList:
    """List the workers of all hosts, and maintenance processes; of what they are doing, what the project's runs ask."""
    # By host. Takes a few seconds at most, also where Redis is away; raises UnavailableError where the database is.
    with reading() as connection:
        maintenance = read_maintenance(connection)
    roll_call = call(app(), settings().broker)
    with reading() as connection:
        holding = _by_worker(read_steps_under_way(connection))
        shown = own_runs(connection, {step.run for steps in holding.values() for step in steps})
    workers = [_answered(each, holding.pop(each.worker, ())) for each in roll_call.present]
    workers += (_silent(worker, steps, answers_known=roll_call.problem is None) for worker, steps in holding.items())
    workers += map(_maintenance, maintenance)
    workers = [replace(each, steps=tuple(step for step in each.steps if step.run in shown)) for each in workers]
    problem = roll_call.problem and settings().secrets.hidden(roll_call.problem)
    return WorkerList(
        workers=tuple(sorted(workers, key=lambda each: (each.host, each.role, each.pid))),
        unasked=problem and without_places(problem),
    )


# The queues: what waits in them, who carries it out and how fast, and what holds it back, from the record alone.

MOST_STOPPED = 20
"""The most runs whose blockage is reported."""


class ListedQueue(stored.KindQueue, frozen=True, kw_only=True):
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
    done: tuple[stored.RecentWork, ...]


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
    troubles: tuple[stored.Trouble, ...]
    put_off: tuple[stored.PutOff, ...]
    batches: tuple[stored.OpenBatch, ...]
    paused: tuple[stored.PausedRun, ...]
    stopped: tuple[StoppedRun, ...]
    flower: str


@operation("workers.queues", "GET", "/queues", Scope.READ)
def show_queues() -> QueueList:
    """List what waits in the queues, who carries it out and how fast, and what holds it back, of the project's runs."""
    with reading() as connection:
        work = stored.read_recent_work(connection)
        return QueueList(
            window_seconds=stored.WINDOW_SECONDS,
            queues=_queues(stored.read_queues(connection), work),
            waiting=stored.count_waiting(connection),
            workers=_workers(read_steps_under_way(connection), work),
            troubles=stored.read_troubles(connection),
            put_off=stored.read_put_off(connection),
            batches=stored.read_open_batches(connection),
            paused=stored.read_paused(connection),
            stopped=tuple(_stopped(connection)),
            flower=settings().flower_url,
        )


def _queues(queues: tuple[stored.KindQueue, ...], work: tuple[stored.RecentWork, ...]) -> tuple[ListedQueue, ...]:
    known = {each.kind: each for each in queues}
    for each in work:
        known.setdefault(each.kind, _empty(each.kind))
    return tuple(_listed(known[kind], [each for each in work if each.kind == kind]) for kind in sorted(known))


def _empty(kind: str) -> stored.KindQueue:
    return stored.KindQueue(kind=kind, ready=0, put_off=0, paused=0, running=0, batched=0, oldest_seconds=None)


def _listed(queue: stored.KindQueue, work: list[stored.RecentWork]) -> ListedQueue:
    done = sum(each.steps for each in work)
    return ListedQueue(
        **common_fields(queue, stored.KindQueue),
        role=KINDS[queue.kind].role if queue.kind in KINDS else "",
        per_second=done / stored.WINDOW_SECONDS,
        milliseconds=sum(each.milliseconds for each in work) / done if done else None,
    )


def _workers(held: list[StepUnderWay], work: tuple[stored.RecentWork, ...]) -> tuple[BusyWorker, ...]:
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
