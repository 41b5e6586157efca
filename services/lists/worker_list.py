"""Who carries steps out: the workers of all hosts and what each is doing, and the maintenance processes."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum, auto
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from cotrail.configuration.settings import settings
from cotrail.core.actions.kind import Role
from cotrail.core.actions.registry import carried_out_by
from cotrail.models.queries.workers import (
    MaintenanceSession,
    StepUnderWay,
    own_runs,
    read_maintenance,
    read_steps_under_way,
)
from cotrail.services.store import reading
from cotrail.tasks.roll_call import Present, call


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


def list_workers(app: Any) -> WorkerList:
    """The workers that answer over Redis, those that hold steps, and the maintenance processes, by host.

    app: the Celery app. Takes a few seconds at most, also where Redis is away. Raises UnavailableError where the
    database is.
    """
    with reading() as connection:
        maintenance = read_maintenance(connection)
    roll_call = call(app, settings().broker)
    with reading() as connection:
        holding = _by_worker(read_steps_under_way(connection))
        shown = own_runs(connection, {step.run for steps in holding.values() for step in steps})
    workers = [_answered(each, holding.pop(each.worker, ())) for each in roll_call.present]
    workers += (_silent(worker, steps, answers_known=roll_call.problem is None) for worker, steps in holding.items())
    workers += map(_maintenance, maintenance)
    workers = [replace(each, steps=tuple(step for step in each.steps if step.run in shown)) for each in workers]
    problem = roll_call.problem and settings().secrets.hidden(roll_call.problem)
    return WorkerList(workers=tuple(sorted(workers, key=_place)), unasked=problem)


def _by_worker(steps: Iterable[StepUnderWay]) -> dict[str, tuple[StepUnderWay, ...]]:
    steps_of = defaultdict[str, list[StepUnderWay]](list)
    for step in steps:
        steps_of[step.worker].append(step)
    return {worker: tuple(its) for worker, its in steps_of.items()}


def _answered(present: Present, steps: tuple[StepUnderWay, ...]) -> ListedWorker:
    return ListedWorker(
        host=present.host,
        pid=present.pid,
        role=_role(present.kinds),
        state=WorkerState.WORKING if steps else WorkerState.IDLE,
        name=present.name,
        slots=present.slots,
        problem=present.problem,
        steps=steps,
    )


def _silent(worker: str, steps: tuple[StepUnderWay, ...], *, answers_known: bool) -> ListedWorker:
    host, pid, _ = worker.rsplit(":", 2)
    return ListedWorker(
        host=host,
        pid=int(pid),
        role=_role([step.kind for step in steps]),
        state=WorkerState.SILENT if answers_known else WorkerState.WORKING,
        steps=steps,
    )


def _maintenance(session: MaintenanceSession) -> ListedWorker:
    state = WorkerState.ACTIVE if session.leads else WorkerState.STANDING_BY
    return ListedWorker(host=session.host, pid=session.pid, role="maintenance", state=state)


def _role(kinds: Sequence[str]) -> str:
    """The role whose kinds these are; the kinds themselves where a worker has those of several."""
    roles = [role for role in get_args(Role) if set(kinds) <= set(carried_out_by(role))]
    return roles[0] if roles else ", ".join(sorted(set(kinds)))


def _place(worker: ListedWorker) -> tuple[str, str, int]:
    return worker.host, worker.role, worker.pid
