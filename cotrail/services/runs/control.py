"""Control of runs under way: pause, resume, retry, prioritize and cancel, by the name that a person gives.

A run is named by its id, the beginning of it, its name, or `latest`. Each function is idempotent: where one was
interrupted, calling it again completes it.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, Literal

from msgspec import Meta, Struct
from sqlalchemy import Engine

from cotrail.common.humanize import MOST_DAYS
from cotrail.core.budgets import NO_BUDGET, Budget, Budgets
from cotrail.errors import InputError, UnknownNameError
from cotrail.models.commands import control, pruning, retrying
from cotrail.models.commands.pruning import Pruned as Pruned
from cotrail.models.commands.pruning import Weight as Weight
from cotrail.models.queries.runs import resolve_run
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import LOCAL_ONLY, operation
from cotrail.services.runs.requests import Priority
from cotrail.services.store import open_store, reading, reading_from
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


class RaisedRun(Struct, frozen=True, kw_only=True):
    """A run with its budgets of today; questions: how many go on that former ones had ended."""

    run: str
    budgets: Budgets
    questions: int


@operation("runs.pause", "POST", "/runs/{run}/pause", Scope.OPERATE)
def pause_run(run: str) -> ControlledRun:
    """Pause a run: no further step begins; steps under way finish and are recorded."""
    with open_store() as engine:
        run_id = _resolve(engine, run)
        control.pause(engine, run_id)
        return ControlledRun(run=run_id, done="pause")


Counted = Annotated[Report, LOCAL_ONLY]


@operation("runs.resume", "POST", "/runs/{run}/resume", Scope.OPERATE)
def resume_run(run: str, report: Counted = lambda _: None) -> ControlledRun:
    """Continue a paused run, and try its blocked questions again."""
    with open_store() as engine:
        run_id = _resolve(engine, run)
        control.resume(engine, run_id, find_system, report)
        return ControlledRun(run=run_id, done="resume")


@operation("runs.retry", "POST", "/runs/{run}/retry", Scope.OPERATE)
def retry_run(run: str, *, failed: bool = True, blocked: bool = True, report: Counted = lambda _: None) -> RetriedRun:
    """Try a run's failed and blocked questions again, from the step that they stopped at."""
    with open_store() as engine:
        run_id = _resolve(engine, run)
        done = retrying.retry(engine, run_id, find_system, failed=failed, blocked=blocked, report=report)
        return RetriedRun(run=run_id, failed=done.failed, blocked=done.blocked, stuck=done.stuck)


@operation("runs.prioritize", "PUT", "/runs/{run}/priority", Scope.OPERATE)
def prioritize_run(run: str, priority: Priority) -> PrioritizedRun:
    """Have a run's questions begun before those of runs with a lower number."""
    with open_store() as engine:
        run_id = _resolve(engine, run)
        control.prioritize(engine, run_id, priority)
        return PrioritizedRun(run=run_id, priority=priority)


@operation("runs.budget", "PUT", "/runs/{run}/budget", Scope.OPERATE)
def raise_run_budget(
    run: str, *, question_budget: Budget = NO_BUDGET, run_budget: Budget = NO_BUDGET, report: Counted = lambda _: None
) -> RaisedRun:
    """Give a run larger limits than it has; the questions that the former ones ended go on from where they were."""
    with open_store() as engine:
        budgets = Budgets(question=question_budget, run=run_budget)
        run_id = _resolve(engine, run)
        done = retrying.raise_budget(engine, run_id, budgets, find_system, report)
        return RaisedRun(run=run_id, budgets=done.budgets, questions=done.questions)


def cancel(engine: Engine, run: str, report: Report) -> ControlledRun:
    """Ends a run permanently; its record stays."""
    run_id = _resolve(engine, run)
    control.cancel(engine, run_id, report)
    return ControlledRun(run=run_id, done="cancel")


def _resolve(engine: Engine, run: str) -> str:
    with reading_from(engine) as connection:
        return resolve_run(connection, run)


@operation("runs.cancel", "POST", "/runs/{run}/cancel", Scope.OPERATE, own=True)
def cancel_run(run: str, report: Counted = lambda _: None) -> ControlledRun:
    """End a run permanently; its record stays."""
    with open_store() as engine:
        return cancel(engine, run, report)


PruningReport = Callable[[Pruned], None]
"""Called with what was removed so far."""


class PrunedRuns(Struct, frozen=True, kw_only=True):
    """Runs to remove; weight: their size; removed: the rows that went, None before."""

    runs: tuple[str, ...]
    weight: Weight
    removed: Pruned | None = None


Days = Annotated[float, Meta(ge=0, le=MOST_DAYS)]


@operation("pruning.choose", "GET", "/prunable", Scope.READ)
def choose_runs(runs: Sequence[str] = (), older_than: Days | None = None) -> PrunedRuns:
    """Say which runs would be removed, first those whose removal was interrupted, and how large they are.

    older_than: takes all that ended at least this many days ago too.
    """
    # Raises InputError where none is named.
    with reading() as connection:
        # An interrupted removal left a run without some of its rows, so it is completed first in every case.
        ids = pruning.begun(connection)
        ids += (resolve_run(connection, run) for run in runs)
        if older_than is not None:
            ids += pruning.ended_before(connection, older_than)
        ids = list(dict.fromkeys(ids))
        if not runs and older_than is None and not ids:
            raise InputError("say which runs: by their ids, or with --older-than DAYS")
        return PrunedRuns(runs=tuple(ids), weight=pruning.weigh(connection, ids))


Removed = Annotated[PruningReport, LOCAL_ONLY]


@operation("pruning.prune", "POST", "/prune", Scope.OPERATE)
def prune_runs(runs: Sequence[str], report: Removed = lambda _: None) -> Pruned:
    """Remove runs permanently: their questions, steps and attempts, and paragraphs that no other run refers to.

    A run that hasn't ended is refused: cancel it first. Those that aren't there any more are left out, so that the same
    request completes a removal that was interrupted.
    """
    # Raises InputError where one hasn't ended, or a name may be several.
    with open_store() as engine:
        total = Pruned()
        for chunk in pruning.prune(engine, _still_there(engine, runs)):
            total = Pruned(**{name: getattr(total, name) + getattr(chunk, name) for name in Pruned.__struct_fields__})
            report(total)
        return total


def _still_there(engine: Engine, runs: Sequence[str]) -> list[str]:
    """The ids of these runs, without those that another process has removed meanwhile."""
    ids = []
    with reading_from(engine) as connection:
        for run in runs:
            with suppress(UnknownNameError):
                ids.append(resolve_run(connection, run))
    return list(dict.fromkeys(ids))
