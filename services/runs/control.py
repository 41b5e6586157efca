"""Control of runs under way: pause, resume, retry, prioritize and cancel, by the name that a person gives.

A run is named by its id, the beginning of it, its name, or `latest`. Each function is idempotent: where one was
interrupted, calling it again completes it.
"""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from sqlalchemy import Engine

from cotrail.models.commands import control, retrying
from cotrail.models.queries.runs import resolve_run
from cotrail.systems.registry import find_system

Report = Callable[[int], None]
"""Called with the number of questions that are done so far."""


class ControlledRun(Struct, frozen=True, kw_only=True):
    """A run, and what was done with it."""

    run: str
    done: Literal["pause", "resume", "cancel"]


class PrioritizedRun(Struct, frozen=True, kw_only=True):
    """A run with its new priority."""

    run: str
    priority: int


class RetriedRun(Struct, frozen=True, kw_only=True):
    """Questions of a run that are tried again; stuck: failed ones that can't be, as no step of theirs failed."""

    run: str
    failed: int
    blocked: int
    stuck: int


def pause(engine: Engine, run: str) -> ControlledRun:
    """Begins no further step of a run; steps under way are finished and recorded."""
    run_id = _resolve(engine, run)
    control.pause(engine, run_id)
    return ControlledRun(run=run_id, done="pause")


def resume(engine: Engine, run: str, report: Report) -> ControlledRun:
    """Continues a paused run, and tries its blocked questions again."""
    run_id = _resolve(engine, run)
    control.resume(engine, run_id, find_system, report)
    return ControlledRun(run=run_id, done="resume")


def retry(engine: Engine, run: str, report: Report, *, failed: bool, blocked: bool) -> RetriedRun:
    """Tries a run's failed or blocked questions again, from the step that they stopped at."""
    run_id = _resolve(engine, run)
    done = retrying.retry(engine, run_id, find_system, failed=failed, blocked=blocked, report=report)
    return RetriedRun(run=run_id, failed=done.failed, blocked=done.blocked, stuck=done.stuck)


def prioritize(engine: Engine, run: str, priority: int) -> PrioritizedRun:
    """Has a run's questions begun before those of runs with a lower priority."""
    run_id = _resolve(engine, run)
    control.prioritize(engine, run_id, priority)
    return PrioritizedRun(run=run_id, priority=priority)


def cancel(engine: Engine, run: str, report: Report) -> ControlledRun:
    """Ends a run permanently; its record stays."""
    run_id = _resolve(engine, run)
    control.cancel(engine, run_id, report)
    return ControlledRun(run=run_id, done="cancel")


def _resolve(engine: Engine, run: str) -> str:
    with engine.connect() as connection:
        return resolve_run(connection, run)
